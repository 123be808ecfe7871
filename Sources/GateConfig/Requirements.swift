internal import GateBytes

/// What else a request must show once its proof holds (`require`); nil is no condition.
package struct Requirements: Sendable, Equatable {
    /// How the app was signed.
    package struct Category: Sendable, Equatable {
        /// The numbers that pass, Apple's.
        package var allowed: Set<UInt32>
        /// Whether a request without passes.
        package var isAbsentAllowed: Bool

        /// A condition by its parts.
        package init(allowed: Set<UInt32>, isAbsentAllowed: Bool) {
            self.allowed = allowed
            self.isAbsentAllowed = isAbsentAllowed
        }

        /// Apple's categories by number, as `proxy.conf` and `App-Attest-Risk` write them.
        package static let names = [
            "invalid", "os", "testflight", "development", "app_store", "enterprise",
            "developer_id", "local", "rosetta", "jit", "none",
        ]
    }

    /// The app's version.
    package struct BundleVersion: Sendable, Equatable {
        /// The least that passes.
        package var least: DottedNumber
        /// Whether a request without, or with one that is no dotted number, passes.
        package var isAbsentAllowed: Bool

        /// A condition by its parts.
        package init(least: DottedNumber, isAbsentAllowed: Bool) {
            self.least = least
            self.isAbsentAllowed = isAbsentAllowed
        }
    }

    /// Apple's fraud metric.
    package struct Metric: Sendable, Equatable {
        /// The greatest that passes.
        package var most: Int
        /// Whether a key whose metric is not known passes.
        package var isAbsentAllowed: Bool

        /// A condition by its parts.
        package init(most: Int, isAbsentAllowed: Bool) {
            self.most = most
            self.isAbsentAllowed = isAbsentAllowed
        }
    }

    package var category: Category?
    package var bundleVersion: BundleVersion?
    package var metric: Metric?
    /// The least age of a key, since its enrolment.
    package var keyAge: Duration?

    /// No conditions.
    package init() {}

    /// Whether every request meets them.
    package var isEmpty: Bool { self == Requirements() }
}

/// Whole numbers with dots between, compared part by part: 1.10 is over 1.9, and 1 is 1.0.
package struct DottedNumber: Sendable, Equatable, Comparable {
    /// The digits of each part without zeros in front; trailing parts that are zero are cut.
    private let parts: [[UInt8]]

    /// The number that `text` is; nil for anything else.
    package init?(_ text: String) {
        var parts: [[UInt8]] = []
        for part in text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        {
            guard !part.isEmpty, part.allSatisfy(ASCII.isDigit) else { return nil }
            parts.append(Array(part.drop { $0 == UInt8(ascii: "0") }))
        }
        while parts.last?.isEmpty == true { parts.removeLast() }
        self.parts = parts
    }

    package static func < (left: DottedNumber, right: DottedNumber) -> Bool {
        for (one, other) in zip(left.parts, right.parts) where one != other {
            return one.count != other.count
                ? one.count < other.count : one.lexicographicallyPrecedes(other)
        }
        return left.parts.count < right.parts.count
    }
}
