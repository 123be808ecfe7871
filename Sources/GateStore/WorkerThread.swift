internal import Glibc

/// A thread that runs one closure.
struct WorkerThread: Sendable {
    private let thread: pthread_t

    private final class Work {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Starts the thread with every signal blocked: signals are the runtime's.
    init(_ body: @escaping @Sendable () -> Void) throws(StorageFailure) {
        let work = unsafe Unmanaged.passRetained(Work(body))
        var thread = pthread_t()
        var blocked = sigset_t()
        var previous = sigset_t()
        unsafe sigfillset(&blocked)
        unsafe pthread_sigmask(SIG_SETMASK, &blocked, &previous)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }
        let code = unsafe pthread_create(
            &thread, nil,
            { argument in
                if let argument = unsafe argument {
                    let work = unsafe Unmanaged<Work>.fromOpaque(argument).takeRetainedValue()
                    work.body()
                }
                return nil
            }, work.toOpaque())
        guard code == 0 else {
            unsafe work.release()
            throw StorageFailure(
                operation: .open, path: "writer thread",
                cause: .other(code: code, text: "cannot start"))
        }
        self.thread = thread
    }

    /// Waits for its end.
    func join() {
        pthread_join(thread, nil)
    }
}
