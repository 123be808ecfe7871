package import GateConfig
package import GateRuntime
package import GateStore

/// What a gate is started with besides its configuration: the store, the spool and the logs,
/// opened.
package struct GateServices: Sendable {
    package let store: Store
    package let spool: Spool
    /// Nil where `access off`.
    package let accessLog: LineWriter?
    package let errorLog: ErrorLog
    package let metrics: Metrics
    private let errorWriter: LineWriter
    let storeWaitMax: Duration

    /// A disk that has not synced by then is stuck, and a client is better off trying elsewhere.
    package static let storeWaitMax = Duration.seconds(10)

    /// Services that are open already.
    /// - Parameter storeWaitMax: How long a request waits for the store.
    package init(
        store: Store, spool: Spool, accessLog: LineWriter?, errorLog: ErrorLog,
        errorWriter: LineWriter, metrics: Metrics = Metrics(version: "", now: 0),
        storeWaitMax: Duration = GateServices.storeWaitMax
    ) {
        self.store = store
        self.spool = spool
        self.accessLog = accessLog
        self.errorLog = errorLog
        self.errorWriter = errorWriter
        self.metrics = metrics
        self.storeWaitMax = storeWaitMax
    }

    /// Opens them as `configuration` says.
    /// - Parameters:
    ///   - hasPriorities: Whether error lines begin with a journal priority.
    ///   - version: The program's, for its metrics.
    /// - Throws: What keeps the gate from starting: a directory, a lock, a log that cannot be read.
    package static func open(
        _ configuration: Configuration, hasPriorities: Bool, version: String
    ) throws(StartError) -> GateServices {
        let clock = SystemClock()
        let errorWriter = LineWriter.standardError()
        let errorLog = ErrorLog(
            level: configuration.log.errorLevel, writer: errorWriter,
            hasPriorities: hasPriorities, clock: clock)
        let accessLog = try openAccessLog(configuration.log.access, errorLog)
        do throws(SystemError) {
            try FileSystem.createDirectory(configuration.spool.directory)
        } catch {
            throw StartError(
                "spool: \(error); write \"dir /path\" in block spool, "
                    + "where the gate's user can write")
        }
        let spool = Spool(
            directory: configuration.spool.directory, bytesMax: configuration.spool.bytesMax,
            filesMax: configuration.spool.filesMax)
        let now = UInt32(clamping: clock.unixNanoseconds() / 1_000_000_000)
        let metrics = Metrics(version: version, now: Int64(now))
        var options = StoreOptions(
            configuration.store,
            clock: { UInt32(clamping: clock.unixNanoseconds() / 1_000_000_000) })
        options.onStateChange = { state in errorLog.write(state) }
        let store: Store
        do throws(StoreError) {
            store = try Store.open(
                storage: FileStorage(
                    directory: configuration.store.directory,
                    onSync: { metrics.noteSync(nanoseconds: $0) }),
                options: options,
                log: { notice in errorLog.write(notice.severity, "store: \(notice)") })
        } catch {
            throw StartError("store: \(error)")
        }
        for (name, directory) in [
            ("store", configuration.store.directory), ("spool", configuration.spool.directory),
        ] where FileSystem.isWritableByOthers(directory) {
            errorLog.write(
                .warn, "\(name): others than its owner may write to \(directory); chmod 700 it")
        }
        return GateServices(
            store: store, spool: spool, accessLog: accessLog, errorLog: errorLog,
            errorWriter: errorWriter, metrics: metrics)
    }

    private static func openAccessLog(
        _ destination: LogSettings.Destination, _ errorLog: ErrorLog
    ) throws(StartError) -> LineWriter? {
        let onFailure: @Sendable (SystemError) -> Void = { error in
            errorLog.write(.error, "access log: \(error); lines are dropped and counted")
        }
        switch destination {
        case .off: return nil
        case .stdout: return .standardOutput(onFailure: onFailure)
        case .file(let path):
            do throws(SystemError) {
                return try .file(path, onFailure: onFailure)
            } catch {
                throw StartError("access log \(path): \(error)")
            }
        }
    }

    /// Opens log files again under their paths, after a rotation.
    package func reopenLogs() {
        do throws(SystemError) {
            try accessLog?.reopen()
        } catch {
            errorLog.write(.error, "access log: \(error)")
        }
    }

    /// Closes the store and writes out what the logs still hold: the last act of a process.
    package func close() {
        store.close()
        accessLog?.flush()
        errorWriter.flush()
    }
}

extension ErrorLog {
    fileprivate func write(_ state: StoreState) {
        switch state {
        case .closed: return
        case .failed(let failure): write(.error, "store stopped until restart: \(failure)")
        case .outOfSpace(let failure): write(.error, "store waits for space: \(failure)")
        case .ready: write(.warn, "store ready again")
        }
    }
}

extension StoreOptions {
    /// The options that `settings` come to.
    fileprivate init(_ settings: StoreSettings, clock: @escaping @Sendable () -> UInt32) {
        self.init(shards: settings.shards, keysMax: settings.keysMax, now: clock())
        if let milliseconds = settings.relaxedMilliseconds {
            durability = .relaxed(milliseconds: milliseconds)
        }
        snapshots = SnapshotSchedule(
            everySeconds: Int(clamping: settings.snapshotInterval.components.seconds),
            afterBytes: settings.snapshotAfterBytes, clock: clock)
    }
}

extension StoreNotice {
    /// How much a notice matters: making a new store is what a first start does, and snapshots are
    /// written all the time.
    fileprivate var severity: LogSettings.Level {
        switch self {
        case .created, .snapshotWritten: .info
        case .epochMoved, .keysMaxReached, .leftoversStay, .receipts, .snapshotFailed,
            .snapshotPassedOver,
            .spaceExhausted, .spaceReturned, .stopped, .tornTail:
            .warn
        }
    }
}
