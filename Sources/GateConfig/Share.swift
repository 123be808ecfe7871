/// The part of an enforced route's requests that is judged: `mode enforce N% by=… else=…`.
///
/// Who is inside is told by a keyed hash of what the share goes by, so that it stays the same, and
/// nobody can choose; whoever cannot be told by it is inside.
package struct Share: Sendable, Equatable {
    /// What the share goes by.
    package enum Basis: String, Sendable, Equatable {
        case account
        case address
        case keyID = "key_id"
    }

    /// What becomes of a request outside.
    package enum Otherwise: String, Sendable, Equatable {
        case monitor
        case off
    }

    /// Hundredths of the values that are inside, 0 to 100.
    package var percent: Int
    /// What the share goes by.
    package var basis: Basis
    /// What becomes of a request outside.
    package var otherwise: Otherwise

    /// A share by its parts.
    package init(percent: Int, basis: Basis, otherwise: Otherwise) {
        self.percent = percent
        self.basis = basis
        self.otherwise = otherwise
    }
}
