/// Which certificates answer for which server name: exact before wildcard, the first one otherwise.
///
/// Certificates with the same name and keys of different algorithms stand side by side in one
/// *group*, and the client's signature algorithms decide; of two with the same algorithm the first
/// counts.
package struct CertificateChoice {
    /// The groups, each a list of indices into the identities. The first answers for every name
    /// that no certificate has.
    package private(set) var groups: [[Int]] = []
    private var exact: [String: Int] = [:]
    /// By the name without `*.`.
    private var wildcard: [String: Int] = [:]

    /// A choice among certificates, each with its names in lower case and its key's algorithm.
    package init(_ certificates: [(names: [String], algorithm: Int32)]) {
        // The first certificate's own name, so that its pair of another algorithm comes along.
        let leading = certificates.first?.names.first
        addGroup(leading.map { members(of: $0, certificates) } ?? [0])
        for certificate in certificates {
            for name in certificate.names {
                let group = addGroup(members(of: name, certificates))
                if name.hasPrefix("*.") {
                    wildcard[String(name.dropFirst(2))] = group
                } else {
                    exact[name] = group
                }
            }
        }
    }

    /// The group that answers for `name`, in lower case.
    package func group(for name: String) -> Int {
        if let group = exact[name] { return group }
        guard let dot = name.firstIndex(of: ".") else { return 0 }
        return wildcard[String(name[name.index(after: dot)...])] ?? 0
    }

    private func members(
        of name: String, _ certificates: [(names: [String], algorithm: Int32)]
    ) -> [Int] {
        var algorithms: Set<Int32> = []
        return certificates.indices.filter { index in
            certificates[index].names.contains(name)
                && algorithms.insert(certificates[index].algorithm).inserted
        }
    }

    @discardableResult
    private mutating func addGroup(_ members: [Int]) -> Int {
        if let known = groups.firstIndex(of: members) { return known }
        groups.append(members)
        return groups.count - 1
    }
}
