internal import CGateOpenSSL

/// The versions of the libraries this module stands on.
package enum LibraryVersion {
    /// OpenSSL as it is loaded now, e.g. `OpenSSL 3.0.22 25 Aug 2026`.
    package static var openSSL: String {
        guard let text = unsafe OpenSSL_version(OPENSSL_VERSION) else { return "OpenSSL" }
        return unsafe String(cString: text)
    }
}
