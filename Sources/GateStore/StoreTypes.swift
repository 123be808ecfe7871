package import GateBytes

/// How a store is opened.
package struct StoreOptions: Sendable {
    /// Who turns the log's writer.
    package enum Writer: Sendable {
        /// The caller, by ``Store/step()``: for tests and offline commands.
        case stepped
        /// A thread of the store's own.
        case thread
    }

    /// The number of shards of each kind; a power of two, 1 to 4096.
    package var shards: Int
    /// The most keys the store takes; an enrolment over it is `unavailable`.
    package var keysMax: Int
    /// Unix seconds at the start: spent challenges whose life is over by then are not kept.
    package var now: UInt32
    /// The bytes of a segment, a multiple of 512, 4 KiB to 1 GiB.
    package var segmentBytes: Int
    /// The bytes of a segment of receipts, a multiple of 512.
    package var receiptSegmentBytes: Int
    /// Who turns the writer.
    package var writer: Writer
    /// When an admit is answered.
    package var durability = StoreDurability.strict
    /// When snapshots are written; never where nil, but for who asks.
    package var snapshots: SnapshotSchedule?
    /// Told of each change of ``Store/state``, on the writer's thread, once it has taken effect.
    package var onStateChange: @Sendable (StoreState) -> Void

    /// Options with the defaults of `StoreLimits`.
    package init(
        shards: Int = 64, keysMax: Int = 5_000_000, now: UInt32,
        segmentBytes: Int = StoreLimits.segmentBytes,
        receiptSegmentBytes: Int = StoreLimits.receiptSegmentBytes, writer: Writer = .thread,
        onStateChange: @escaping @Sendable (StoreState) -> Void = { _ in }
    ) {
        self.shards = shards
        self.keysMax = keysMax
        self.now = now
        self.segmentBytes = segmentBytes
        self.receiptSegmentBytes = receiptSegmentBytes
        self.writer = writer
        self.onStateChange = onStateChange
    }
}

/// When an admit is answered. Enrolments, revocations, blocks and admits without a challenge are
/// always answered once they are on disk.
package enum StoreDurability: Sendable, Equatable {
    /// Once its record is on disk.
    case strict
    /// At once; its record is on disk so many milliseconds later. After a stop that was not clean
    /// the epoch moves on, so that what was lost is no replay.
    case relaxed(milliseconds: Int)
}

/// When snapshots are written.
package struct SnapshotSchedule: Sendable {
    /// Seconds from one to the next.
    package var everySeconds: Int
    /// Bytes of the log since the last one that are enough for the next.
    package var afterBytes: Int
    /// The time in unix seconds.
    package var clock: @Sendable () -> UInt32
    /// What the writer rests between two megabytes, so that the disk is not its own.
    package var restMilliseconds = 5

    /// A schedule by its parts.
    package init(everySeconds: Int, afterBytes: Int, clock: @escaping @Sendable () -> UInt32) {
        self.everySeconds = everySeconds
        self.afterBytes = afterBytes
        self.clock = clock
    }
}

/// What the store can do now.
package enum StoreState: Sendable, Equatable {
    /// Nothing more: it was closed.
    case closed
    /// Nothing more until it is reopened: a write or sync failed.
    case failed(StorageFailure)
    /// Nothing until the file system has room for the next segment; tried again every second.
    case outOfSpace(StorageFailure)
    /// Everything.
    case ready
}

/// Bounds of the store, each with its reason.
package enum StoreLimits {
    /// Bytes of a segment: small enough for a small volume, and some 800 full batches.
    package static let segmentBytes = 4 << 20
    /// Bytes of a segment of receipts: some 4,000 of them.
    package static let receiptSegmentBytes = ReceiptFormat.segmentBytes
    /// Bytes of the records that may wait for the writer; over it calls are `unavailable`. One
    /// batch holds them all, so every call that waits is answered by the next sync.
    package static let waitingBytesMax = 1 << 20
    /// Seconds a spent challenge is remembered after it expired (`protocol.md` §1).
    package static let spentLifeSeconds: UInt32 = 3600
    /// Seconds a spent DeviceCheck token is remembered (`protocol.md` §8).
    package static let tokenLifeSeconds: UInt32 = 30 * 86_400
    /// Spent tokens of one shard: some 16 million over all, each one that Apple has taken. Over it
    /// a token is `unavailable`.
    package static let tokensOfShardMax = 1 << 18
    /// Seconds without use after which a key makes room for a new one of its account
    /// (`protocol.md` §2): a device that nobody has used for a month.
    package static let retirementIdleSeconds: UInt32 = 30 * 86_400
    /// Bytes of an account, app or bundle version: two bytes of length on disk.
    package static let textBytesMax = 65535
}

/// A challenge that is spent, as the store knows it.
package struct SpentChallenge: Sendable, Hashable {
    /// The first eight of the challenge's sixteen random bytes, big endian.
    package var nonceHigh: UInt64
    /// The other eight.
    package var nonceLow: UInt64
    /// Unix seconds at which the challenge expires.
    package var expiry: UInt32

    /// A challenge by its parts.
    package init(nonceHigh: UInt64, nonceLow: UInt64, expiry: UInt32) {
        self.nonceHigh = nonceHigh
        self.nonceLow = nonceLow
        self.expiry = expiry
    }
}

/// An enrolled key, as it stood at one moment.
package struct KeyRecord: Sendable, Equatable {
    /// SHA-256 of the public key.
    package var keyID: Bytes32
    /// The credential public key.
    package var publicKey: P256Point
    /// The account that enrolled it; empty where there are none.
    package var account: [UInt8]
    /// The app it belongs to, as the enrolment named it.
    package var app: String
    /// The environment, as the enrolment numbered it.
    package var environment: UInt8
    /// The greatest counter admitted, 0 before the first.
    package var signCounter: UInt32
    /// Whether it is good for nothing any more.
    package var isRevoked: Bool
    /// Unix seconds of the enrolment.
    package var enrolledAt: UInt32
    /// Unix seconds of the last admit; of the enrolment before the first.
    package var lastUsedAt: UInt32
    /// The epoch of the last admit that spent a challenge; of the enrolment before the first.
    package var challengeEpoch: UInt32
    /// The validation category of the attestation, where it had one.
    package var category: UInt8?
    /// The bundle version of the attestation, where it had one.
    package var bundleVersion: String?
    /// Where its receipt is; nil without one.
    package var receipt: ReceiptLocation?
    /// Apple's fraud metric of its device; nil while Apple has not said.
    package var metric: RiskMetric?
    /// Unix seconds of its receipt's next refresh; nil for none.
    package var refreshAt: UInt32?

    /// A record by its parts.
    package init(
        keyID: Bytes32, publicKey: P256Point, account: [UInt8], app: String, environment: UInt8,
        signCounter: UInt32, isRevoked: Bool, enrolledAt: UInt32, lastUsedAt: UInt32,
        challengeEpoch: UInt32, category: UInt8?, bundleVersion: String?,
        receipt: ReceiptLocation? = nil, metric: RiskMetric? = nil, refreshAt: UInt32? = nil
    ) {
        self.keyID = keyID
        self.publicKey = publicKey
        self.account = account
        self.app = app
        self.environment = environment
        self.signCounter = signCounter
        self.isRevoked = isRevoked
        self.enrolledAt = enrolledAt
        self.lastUsedAt = lastUsedAt
        self.challengeEpoch = challengeEpoch
        self.category = category
        self.bundleVersion = bundleVersion
        self.receipt = receipt
        self.metric = metric
        self.refreshAt = refreshAt
    }

    /// Whether a receipt is kept for it.
    package var hasReceipt: Bool { receipt != nil }
}

/// A key to be enrolled: what its attestation proved.
package struct NewKey: Sendable, Equatable {
    /// SHA-256 of the public key.
    package var keyID: Bytes32
    /// The credential public key.
    package var publicKey: P256Point
    /// The account it is enrolled for; empty where there are none.
    package var account: [UInt8]
    /// The app it belongs to.
    package var app: String
    /// The environment, any number the caller can tell apart.
    package var environment: UInt8
    /// The counter already used: 0, or that of the assertion of an inline enrolment.
    package var signCounter: UInt32
    /// The attestation's receipt; empty for none.
    package var receipt: [UInt8]
    /// Unix seconds of the receipt's first refresh; nil for none.
    package var refreshAt: UInt32?
    /// The validation category, 0 to 254; nil when the attestation had none.
    package var category: UInt8?
    /// The bundle version; nil when the attestation had none.
    package var bundleVersion: String?

    /// A key by its parts.
    package init(
        keyID: Bytes32, publicKey: P256Point, account: [UInt8], app: String, environment: UInt8,
        signCounter: UInt32 = 0, receipt: [UInt8] = [], refreshAt: UInt32? = nil,
        category: UInt8? = nil, bundleVersion: String? = nil
    ) {
        self.keyID = keyID
        self.publicKey = publicKey
        self.account = account
        self.app = app
        self.environment = environment
        self.signCounter = signCounter
        self.receipt = receipt
        self.refreshAt = refreshAt
        self.category = category
        self.bundleVersion = bundleVersion
    }
}

/// The answer to an admit. Anything but `admitted` and `unavailable` changed nothing.
package enum AdmitOutcome: Sendable, Equatable {
    /// The challenge is spent and the counter advanced, durably.
    case admitted(previousCounter: UInt32)
    /// The challenge expired over an hour ago; whether it was spent is forgotten.
    case challengeExpired
    case challengeSpent
    case counterNotGreater
    /// There is no challenge, and the key has not passed with one since the epoch moved on.
    case epochBehind
    case keyRevoked
    case keyUnknown
    /// The store cannot say: the proof may be spent or not, and nothing may be forwarded.
    case unavailable
}

/// The answer to an enrolment. Only the two that enrol, and `alreadyKnown`, spent the challenge.
package enum EnrolOutcome: Sendable, Equatable {
    case accountBlocked
    /// The same account, app and environment hold it: the challenge is spent, and nothing else
    /// changed but the counter, where one came with the key.
    case alreadyKnown
    case challengeExpired
    case challengeSpent
    /// The key is known already, with a counter not below the one that came with it.
    case counterNotGreater
    /// The key is stored and the challenge spent, durably.
    case enrolled
    /// As `enrolled`; the account had all the keys it may, and this one of them, unused for longest
    /// and for a month, is revoked with the same step.
    case enrolledRetiring(Bytes32)
    /// Another account, app or environment holds it.
    case foreign
    /// The account has as many keys of this app as it may, and has used all of them lately.
    case limit
    case revoked
    /// As for an admit; also over `keysMax`.
    case unavailable
}

/// The answer to a revocation.
package enum RevokeOutcome: Sendable, Equatable {
    /// No such key of that account and app, or it was revoked already; durably so.
    case nothing
    /// The key is revoked, durably.
    case revoked
    case unavailable
}

/// The answer to blocking or unblocking an account.
package enum BlockOutcome: Sendable, Equatable {
    /// The account is as asked, durably.
    case done
    case unavailable
}

/// The secrets under which challenges are made.
package struct StoreSecrets: Sendable, Equatable {
    /// A secret that is honoured a while longer.
    package struct Previous: Sendable, Equatable {
        /// The secret.
        package var secret: Bytes32
        /// Unix seconds until which it is honoured.
        package var until: UInt32

        /// A secret and its end.
        package init(secret: Bytes32, until: UInt32) {
            self.secret = secret
            self.until = until
        }
    }

    /// The secret that makes and checks.
    package var current: Bytes32
    /// The one before, which only checks.
    package var previous: Previous?

    /// Secrets by their parts.
    package init(current: Bytes32, previous: Previous? = nil) {
        self.current = current
        self.previous = previous
    }
}

/// Sizes, for metrics and the status page.
package struct StoreFigures: Sendable, Equatable {
    /// Keys, revoked ones included.
    package var keys: Int
    /// The same by the app that the enrolment named.
    package var keysByApp: [String: Int]
    /// Spent challenges that are remembered.
    package var spentChallenges: Int
    /// Spent DeviceCheck tokens that are remembered.
    package var spentTokens: Int
    /// Accounts that have a key or are blocked.
    package var accounts: Int
    /// Bytes of all segments, allocated ones whole.
    package var logBytes: Int
    /// The number of segments.
    package var segments: Int
    /// The sequence number of the last durable record.
    package var lastSequence: UInt64
    /// Batches written since the start: as many as syncs.
    package var batches: UInt64
    /// Bytes of the newest snapshot; 0 without one.
    package var snapshotBytes: Int
    /// Unix seconds when the newest snapshot was begun; nil without one.
    package var snapshotAt: UInt32?
}

extension StoreSecrets: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// That there are secrets, and none of their bytes.
    package var description: String {
        previous == nil ? "one secret" : "two secrets"
    }

    /// As ``description``.
    package var debugDescription: String { description }

    /// Nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
