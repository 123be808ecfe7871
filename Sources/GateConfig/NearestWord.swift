/// The nearest known word for a misspelt one.
package enum NearestWord {
    /// The word of `candidates` that `word` most likely meant; nil when none is near enough: one
    /// edit in three characters, at most three.
    package static func find(_ word: String, in candidates: some Sequence<String>) -> String? {
        let letters = Array(word.lowercased().unicodeScalars)
        let distanceMax = min(3, max(1, letters.count / 3))
        var best: (word: String, distance: Int)?
        for candidate in candidates where candidate != word {
            let distance = distance(letters, Array(candidate.lowercased().unicodeScalars))
            if distance <= distanceMax, best.map({ distance < $0.distance }) ?? true {
                best = (candidate, distance)
            }
        }
        return best?.word
    }

    /// Insertions, deletions, replacements and swaps of neighbours that turn one word into the
    /// other.
    static func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
        guard left.count <= Limits.wordLengthMax, right.count <= Limits.wordLengthMax else {
            return .max
        }
        var before: [Int] = []
        var previous = Array(0...right.count)
        for row in 0..<left.count {
            var current = [row + 1]
            for column in 0..<right.count {
                let cost = left[row] == right[column] ? 0 : 1
                var best = min(
                    previous[column] + cost, previous[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, left[row] == right[column - 1],
                    left[row - 1] == right[column]
                {
                    best = min(best, before[column - 1] + 1)
                }
                current.append(best)
            }
            before = previous
            previous = current
        }
        return previous[right.count]
    }
}
