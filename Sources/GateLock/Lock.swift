// A pthread lock around a value, with a condition to wait on.
//
// `Synchronization.Mutex` is slower under contention and unknown to the thread sanitizer, hence our
// own.

internal import CGateLinux
internal import Glibc

/// A value that is only reached while its lock is held.
@safe package final class Lock<Value>: @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var value: Value

    /// A lock around `value`.
    package init(_ value: consuming sending Value) {
        unsafe mutex = UnsafeMutablePointer.allocate(capacity: 1)
        unsafe condition = UnsafeMutablePointer.allocate(capacity: 1)
        self.value = value
        unsafe precondition(pthread_mutex_init(mutex, nil) == 0)
        unsafe precondition(gate_condition_init(condition) == 0)
    }

    deinit {
        unsafe pthread_cond_destroy(condition)
        unsafe pthread_mutex_destroy(mutex)
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
    }

    /// Runs `body` while the lock is held. It must not take the same lock.
    package func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return try body(&value)
    }

    /// Waits, letting go of the lock meanwhile, until `condition` holds or `seconds` have passed;
    /// then runs `body`. The condition is looked at after each `wake`.
    package func wait<Result>(
        seconds: Int?, until isMet: (borrowing Value) -> Bool, then body: (inout Value) -> Result
    ) -> Result {
        wait(milliseconds: seconds.map { $0 * 1000 }, until: isMet, then: body)
    }

    /// The same, for shorter times.
    package func wait<Result>(
        milliseconds: Int?, until isMet: (borrowing Value) -> Bool,
        then body: (inout Value) -> Result
    ) -> Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        let deadline = milliseconds.map { gate_monotonic_nanoseconds() + Int64($0) * 1_000_000 }
        while !isMet(value) {
            if let deadline {
                guard unsafe gate_condition_wait(condition, mutex, deadline) == 0 else { break }
            } else {
                unsafe pthread_cond_wait(condition, mutex)
            }
        }
        return body(&value)
    }

    /// Wakes whoever waits.
    package func wake() {
        unsafe pthread_cond_broadcast(condition)
    }
}
