package import AppAttest
package import GateBytes
package import GateStore

/// When a receipt is asked for next: pure, all of the times and their reasons in one place. Times
/// are unix seconds.
///
/// The one rule that never bends: not before the receipt's own not-before. All else spreads the
/// load, and lets Apple alone where it has nothing to say.
package enum RefreshPlan {
    /// An ATTEST receipt has no not-before: it worked after three minutes. Spread by the key, over
    /// ten more.
    private static let firstSeconds: UInt64 = 180
    private static let firstSpreadSeconds: UInt64 = 600
    /// A day from one not-before to the next: a tenth more spreads what was enrolled together.
    private static let spreadPart: Int64 = 10
    /// Apple has given a later receipt, lost in a crash; when that one is due nobody says.
    private static let notModifiedSeconds: Int64 = 6 * 3600
    /// No attestation of this device in 30 days: it may come back.
    private static let notFoundSeconds: Int64 = 7 * 86_400
    /// Asking again would bring the same: what is wrong has to be put right first.
    private static let refusedSeconds: Int64 = 30 * 86_400
    /// Of this receipt's team, or for all of them: the next one will tell.
    private static let unauthorizedSeconds: Int64 = 86_400
    /// An answer that is no receipt of the key.
    private static let invalidSeconds: Int64 = 86_400
    /// The files of receipts may be put back, and descriptors come free.
    private static let unreadSeconds: Int64 = 86_400
    private static let backoffSeconds: Int64 = 60
    private static let backoffDoublingsMax = 8

    /// The first refresh of a key that was just enrolled.
    package static func first(of keyID: Bytes32, now: Int64) -> UInt32 {
        clamped(now + Int64(firstSeconds + keyID[word: 2] % firstSpreadSeconds))
    }

    /// What the store is told once `receipt` has come.
    package static func update(
        with receipt: VerifiedReceipt, now: Int64, using random: inout some RandomNumberGenerator
    ) -> ReceiptUpdate {
        ReceiptUpdate(
            metric: receipt.riskMetric.map {
                RiskMetric($0, time: clamped(receipt.creation / 1000))
            },
            refreshAt: next(
                notBefore: receipt.notBefore, creation: receipt.creation, now: now, using: &random)
        )
    }

    /// The next after a receipt made at `creation`, with its not-before; both milliseconds.
    package static func next(
        notBefore: Int64?, creation: Int64, now: Int64,
        using random: inout some RandomNumberGenerator
    ) -> UInt32 {
        let notBefore = notBefore ?? creation + 86_400_000
        let pause = max(0, notBefore - creation) / 1000
        let spread = Int64.random(in: 1...max(1, pause / spreadPart), using: &random)
        return clamped(max(ceiling(notBefore), now) + spread)
    }

    /// The next after 304: not before the not-before (milliseconds) of the receipt that was shown.
    package static func notModified(
        _ notBefore: Int64?, now: Int64, using random: inout some RandomNumberGenerator
    ) -> UInt32 {
        if let notBefore, ceiling(notBefore) > now {
            return clamped(ceiling(notBefore) + Int64.random(in: 1...60, using: &random))
        }
        return spread(now, notModifiedSeconds, &random)
    }

    /// The next after 404.
    package static func notFound(
        now: Int64, using random: inout some RandomNumberGenerator
    ) -> UInt32 {
        spread(now, notFoundSeconds, &random)
    }

    /// The next after 400.
    package static func refused(
        now: Int64, using random: inout some RandomNumberGenerator
    ) -> UInt32 {
        spread(now, refusedSeconds, &random)
    }

    /// The next after 401.
    package static func unauthorized(
        now: Int64, using random: inout some RandomNumberGenerator
    ) -> UInt32 {
        spread(now, unauthorizedSeconds, &random)
    }

    /// The next after an answer that does not verify.
    package static func invalid(
        now: Int64, using random: inout some RandomNumberGenerator
    ) -> UInt32 {
        spread(now, invalidSeconds, &random)
    }

    /// The next after one that could not be read.
    package static func unread(
        now: Int64, using random: inout some RandomNumberGenerator
    ) -> UInt32 {
        spread(now, unreadSeconds, &random)
    }

    /// The next after the `failures`-th 429, 5xx or silence in a row, from 1 on.
    package static func unavailable(
        failures: Int, now: Int64, using random: inout some RandomNumberGenerator
    ) -> UInt32 {
        let doublings = min(max(0, failures - 1), backoffDoublingsMax)
        return spread(now, backoffSeconds << Int64(doublings), &random)
    }

    /// The first whole second that is not before `milliseconds`.
    package static func ceiling(_ milliseconds: Int64) -> Int64 {
        milliseconds / 1000 + (milliseconds % 1000 > 0 ? 1 : 0)
    }

    /// Half of `seconds` to all of them from now, so that what failed together does not come again
    /// together.
    private static func spread(
        _ now: Int64, _ seconds: Int64, _ random: inout some RandomNumberGenerator
    ) -> UInt32 {
        clamped(now + Int64.random(in: (seconds / 2)...seconds, using: &random))
    }

    /// 0 is no time.
    private static func clamped(_ seconds: Int64) -> UInt32 {
        max(1, UInt32(clamping: seconds))
    }
}
