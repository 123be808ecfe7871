internal import GateConfig

/// The nearest known word for one that is not known.
enum Suggestion {
    /// `; did you mean "verify"?`, or nothing when no word of `known` is near.
    static func text(_ word: String, in known: [String]) -> String {
        nearest(word, in: known).map { "; did you mean \"\($0)\"?" } ?? ""
    }

    /// The word that `word` most likely meant; or else the only one that begins with it.
    static func nearest(_ word: String, in known: [String]) -> String? {
        if let nearest = NearestWord.find(word, in: known) { return nearest }
        let beginning = known.filter { $0.hasPrefix(word) }
        return word.isEmpty || beginning.count != 1 ? nil : beginning[0]
    }
}
