// What a reload can change, and what only a restart can: the number of loops, the store, the spool
// and where logs go are opened once, with the process.

extension Configuration {
    /// The directives that differ in `next` and that only a restart changes, as block and name. A
    /// reload leaves them as they are.
    package func needingRestart(in next: Configuration) -> [String] {
        var names: [String] = []
        func note(_ name: String, _ isChanged: Bool) {
            if isChanged { names.append(name) }
        }
        note("loops", loops != next.loops)
        note("log access", log.access != next.log.access)
        note("log error", log.errorLevel != next.log.errorLevel)
        note("store dir", store.directory != next.store.directory)
        note("store shards", store.shards != next.store.shards)
        note("store max_keys", store.keysMax != next.store.keysMax)
        note(
            "store durability", store.relaxedMilliseconds != next.store.relaxedMilliseconds)
        note(
            "store snapshot",
            store.snapshotInterval != next.store.snapshotInterval
                || store.snapshotAfterBytes != next.store.snapshotAfterBytes)
        note("spool dir", spool.directory != next.spool.directory)
        note(
            "spool max",
            spool.bytesMax != next.spool.bytesMax || spool.filesMax != next.spool.filesMax)
        return names
    }
}
