/// The member names of the objects that are open, innermost last: finds a name twice in one object
/// without an allocation per name.
struct JSONNameTable {
    private struct Object {
        let firstEntry: Int
        let firstByte: Int
        /// Only of objects with many members, so that a long object costs no quadratic time.
        var names: Set<[UInt8]>?
    }

    private var text: [UInt8] = []
    private var entries: [Range<Int>] = []
    private var objects: [Object] = []

    /// Starts an object inside the current one.
    mutating func openObject() {
        objects.append(Object(firstEntry: entries.count, firstByte: text.count, names: nil))
    }

    /// Forgets the current object's names.
    mutating func closeObject() {
        guard let object = objects.popLast() else { return }
        entries.removeSubrange(object.firstEntry...)
        text.removeSubrange(object.firstByte...)
    }

    /// Adds `name` to the current object; false when it has it already.
    mutating func insert(_ name: [UInt8]) -> Bool {
        guard let last = objects.indices.last else { return false }
        if objects[last].names != nil {
            return objects[last].names?.insert(name).inserted == true
        }
        let own = entries[objects[last].firstEntry...]
        for entry in own where entry.count == name.count && text[entry].elementsEqual(name) {
            return false
        }
        if own.count == JSONNameTable.linearMax {
            objects[last].names = Set(own.map { Array(text[$0]) } + [name])
            return true
        }
        let start = text.count
        text.append(contentsOf: name)
        entries.append(start..<text.count)
        return true
    }

    /// Members up to which names are compared one by one.
    private static let linearMax = 16
}
