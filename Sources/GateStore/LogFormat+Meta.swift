internal import GateBytes

extension LogFormat.Meta {
    /// Why a start has to move the epoch on, if it has.
    func reasonToMove(tornTail: Bool) -> EpochReason? {
        if isUncertain { return .uncertain }
        return tornTail ? .tornTail : nil
    }

    /// Moves the epoch on, to the time where that is later: a directory restored from a backup may
    /// have had epochs that it does not know of, and their challenges must not come back.
    mutating func moveEpoch(now: UInt32) {
        epoch = max(epoch &+ 1, now)
    }

    /// Makes a new secret and honours the one before for `lifetime` seconds.
    mutating func rotateSecret(lifetime: UInt32, now: UInt32) {
        var random = SystemRandomNumberGenerator()
        let (until, overflow) = now.addingReportingOverflow(lifetime)
        secrets = StoreSecrets(
            current: .random(using: &random),
            previous: StoreSecrets.Previous(
                secret: secrets.current, until: overflow ? .max : until))
    }
}

extension Bytes32 {
    /// Thirty-two random bytes.
    static func random(using random: inout some RandomNumberGenerator) -> Bytes32 {
        var bytes = Bytes32()
        for word in 0..<4 { bytes[word: word] = random.next() }
        return bytes
    }
}
