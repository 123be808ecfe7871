/// A deadline of one owner, on one loop for life.
///
/// Moving it later costs one store: the queue keeps the old entry and looks again when that comes
/// due. This is what makes a deadline that resets on every read affordable.
package final class Deadline {
    /// Runs on the loop when the deadline has passed; set once by the owner.
    package var onPassed: (() -> Void)?
    /// When it passes; nil while it is not set.
    fileprivate(set) var moment: Moment?
    /// The earliest moment at which the queue will look at this deadline.
    fileprivate var queuedFor = Moment.distantFuture
    /// Its place in the queue, -1 outside.
    fileprivate var index = -1

    package init() {}

    /// Whether the deadline is set.
    package var isSet: Bool { moment != nil }

    /// Forgets the moment; its place in the queue dissolves by itself, or serves the next one.
    package func cancel() {
        moment = nil
    }
}

/// The deadlines of one loop: a binary heap by the moment at which each must be looked at.
struct DeadlineQueue {
    private var heap: [Deadline] = []

    /// The moment the queue must next be looked at.
    var next: Moment? { heap.first?.queuedFor }

    mutating func set(_ deadline: Deadline, at moment: Moment) {
        deadline.moment = moment
        guard moment < deadline.queuedFor else { return }
        deadline.queuedFor = moment
        if deadline.index < 0 {
            deadline.index = heap.count
            heap.append(deadline)
        }
        rise(deadline.index)
    }

    mutating func remove(_ deadline: Deadline) {
        deadline.moment = nil
        guard deadline.index >= 0 else { return }
        let index = deadline.index
        swap(index, heap.count - 1)
        heap.removeLast()
        deadline.index = -1
        deadline.queuedFor = .distantFuture
        guard index < heap.count else { return }
        sink(index)
        rise(index)
    }

    /// Takes one deadline that has passed at `now`; nil when none is left.
    mutating func popPassed(at now: Moment) -> Deadline? {
        while let first = heap.first, first.queuedFor <= now {
            guard let moment = first.moment, moment > now else {
                let isPassed = first.moment != nil
                remove(first)
                if isPassed { return first }
                continue
            }
            // It was moved later since it was queued.
            first.queuedFor = moment
            sink(0)
        }
        return nil
    }

    private mutating func swap(_ left: Int, _ right: Int) {
        heap.swapAt(left, right)
        heap[left].index = left
        heap[right].index = right
    }

    private mutating func rise(_ start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].queuedFor < heap[parent].queuedFor else { return }
            swap(child, parent)
            child = parent
        }
    }

    private mutating func sink(_ start: Int) {
        var parent = start
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].queuedFor < heap[least].queuedFor {
                least = child
            }
            guard least != parent else { return }
            swap(parent, least)
            parent = least
        }
    }
}
