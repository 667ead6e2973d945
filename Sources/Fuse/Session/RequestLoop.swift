import CFuse
import Dispatch
import Foundation
import Glibc
import Synchronization

/// The threads that answer a mount's requests: one of them at a time, the leader, waits for requests, and answers them
/// itself as a rule (leader/followers, Schmidt and others 2000).
///
/// If several threads waited, the kernel would wake the one that has waited longest. Each request would go to another
/// thread, whose processor knows nothing of it, and small operations would take about twice as long.
///
/// ```
///              leads.wait()            request               answered
///   follower ───────────────► leader ───────────► answering ──────────► leader
///      ▲                                 │            │
///      └─────────────────────────────────┴────────────┘ passLead(): where more waits than what is long; by the
///         once answered                                  supervisor, when one takes long
/// ```
/// Rules:
/// 1. There is one leader, or the lead is free (`leads` is 1): exactly one thread takes the lead that another one
///    passes on.
/// 2. No request waits for another one longer than twice ``patience``, as long as a thread is left.
/// 3. While no requests come, nothing runs.
// Sendable: `number` and `watches` are touched by the leader alone, and the lead is handed on by a semaphore; all else
// is constant, atomic or in a Mutex.
final class RequestLoop: @unchecked Sendable {
  private struct Threads {
    var count = 1
    /// Threads that wait for the lead.
    var followers = 0
    var hasEnded = false
    var error: Int32 = 0
  }

  /// For how long a leader may be at one request before another thread takes the lead.
  private static let patience: DispatchTimeInterval = .milliseconds(2)
  /// A request for this many bytes or more is worth a thread of its own if others wait.
  private static let largeRequest = 64 << 10
  /// Nanoseconds for which the leader looks for requests rather than sleeping.
  private static let watchTime: UInt64 = 60_000
  /// Nanoseconds of a sleep that was mostly waking up.
  private static let costlySleep: Range<UInt64> = 40_000..<200_000
  /// ``answering`` once the supervisor has taken the lead away.
  private static let taken = UInt64.max

  private let device: Device
  private let limit: Int
  private let threads = Mutex(Threads())
  private let leads = DispatchSemaphore(value: 1)
  private let group = DispatchGroup()
  /// Number of the request that the leader answers; 0 while it waits for one.
  private let answering = Atomic<UInt64>(0)
  /// Number of the last request.
  private var number: UInt64 = 0
  /// Whether the leader does not sleep at once.
  private var watches = false
  private let isSupervised = Atomic(false)
  private let requestsCome = DispatchSemaphore(value: 0)
  private let ends = DispatchSemaphore(value: 0)

  /// - Parameter threads: how many requests are answered at a time.
  init(device: Device, threads: Int) {
    self.device = device
    limit = max(threads, 1)
  }

  /// Answers requests until the connection ends or fuse_session_exit(3) is called; the calling thread is the first.
  ///
  /// - Returns: 0, or the negated errno that ended it.
  func run() -> Int32 {
    start("sheaf-watch", supervise)
    work()
    group.wait()
    return threads.withLock { $0.error }
  }

  private func start(_ name: String, _ body: @escaping @Sendable () -> Void) {
    group.enter()
    let job = Job(body)
    let thread = Thread { [group] in
      job.run()
      group.leave()
    }
    thread.name = name
    thread.start()
  }

  /// A thread's work, released when it is done: the thread itself lasts a moment longer, and must not hold the device.
  private final class Job: Sendable {
    private let body: Mutex<(@Sendable () -> Void)?>

    init(_ body: @escaping @Sendable () -> Void) { self.body = Mutex(body) }

    func run() {
      let body = body.withLock { body in
        defer { body = nil }
        return body
      }
      body?()
    }
  }

  // MARK: - Leading

  private func work() {
    var buffer = fuse_buf()
    defer { free(buffer.mem) }
    while true {
      threads.withLock { $0.followers += 1 }
      leads.wait()
      let hasEnded = threads.withLock { threads in
        threads.followers -= 1
        return threads.hasEnded
      }
      if hasEnded {
        // The next follower has to see it, too.
        leads.signal()
        return
      }
      answering.store(0, ordering: .sequentiallyConsistent)
      watches = false
      lead(&buffer)
    }
  }

  /// Answers requests until the lead is gone.
  private func lead(_ buffer: inout fuse_buf) {
    while true {
      let result = receive(&buffer)
      if result == -EINTR || result == -EAGAIN { continue }
      guard result > 0 else { return end(result) }
      if isLong(buffer) {
        passLead()
        fuse_session_process_buf(device.session, &buffer)
        return
      }
      number += 1
      let current = number
      answering.store(current, ordering: .sequentiallyConsistent)
      if !isSupervised.load(ordering: .sequentiallyConsistent),
        !isSupervised.exchange(true, ordering: .sequentiallyConsistent)
      {
        requestsCome.signal()
      }
      fuse_session_process_buf(device.session, &buffer)
      guard answering.compareExchange(expected: current, desired: 0, ordering: .sequentiallyConsistent).exchanged else {
        return
      }
    }
  }

  /// Waits for a request, without sleeping if sleeping and waking would take most of the time.
  ///
  /// If the caller runs on another processor, putting this thread to sleep and waking it can take longer than the
  /// request, above all in virtual machines. If both share a processor, a sleep costs little, and staying awake would
  /// keep the caller from asking. The length of the last sleep tells these two cases apart, and both from a slow
  /// caller.
  private func receive(_ buffer: inout fuse_buf) -> Int32 {
    let start = Self.nanoseconds
    if watches {
      repeat {
        if hasMore { return fuse_session_receive_buf(device.session, &buffer) }
      } while Self.nanoseconds - start < Self.watchTime
    }
    let sleep = Self.nanoseconds
    let result = fuse_session_receive_buf(device.session, &buffer)
    watches = Self.costlySleep.contains(Self.nanoseconds - sleep)
    return result
  }

  private static var nanoseconds: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  /// Whether the answer takes long or waits for a disk, while other requests wait.
  ///
  /// Source: struct fuse_in_header and fuse_read_in, <linux/fuse.h>.
  private func isLong(_ buffer: fuse_buf) -> Bool {
    guard let request = buffer.mem, buffer.size >= 40 else { return false }
    return switch request.load(fromByteOffset: 4, as: UInt32.self) {
    // FUSE_FSYNC, FUSE_FSYNCDIR, FUSE_SYNCFS
    case 20, 30, 50: hasMore
    // FUSE_READ
    case 15 where buffer.size >= 60:
      request.load(fromByteOffset: 56, as: UInt32.self) >= Self.largeRequest && hasMore
    // FUSE_WRITE
    case 16: buffer.size >= Self.largeRequest && hasMore
    default: false
    }
  }

  private var hasMore: Bool {
    var descriptor = pollfd(fd: fuse_session_fd(device.session), events: Int16(POLLIN), revents: 0)
    return poll(&descriptor, 1, 0) > 0
  }

  /// Makes another thread the leader.
  private func passLead() {
    let isShort = threads.withLock { threads in
      guard threads.followers == 0, threads.count < limit else { return false }
      threads.count += 1
      return true
    }
    if isShort { start("sheaf-fuse", work) }
    leads.signal()
  }

  private func end(_ result: Int32) {
    fuse_session_exit(device.session)
    threads.withLock { threads in
      threads.hasEnded = true
      threads.error = result
    }
    ends.signal()
    requestsCome.signal()
    leads.signal()
  }

  // MARK: - Supervising

  private func supervise() {
    while !threads.withLock({ $0.hasEnded }) {
      requestsCome.wait()
      watch()
    }
  }

  /// Passes the lead on when the leader takes long over one request, until no more requests come.
  private func watch() {
    var last: UInt64 = 0
    var quiet = 0
    while ends.wait(timeout: .now() + Self.patience) == .timedOut {
      let current = answering.load(ordering: .sequentiallyConsistent)
      if current == 0 {
        quiet += 1
      } else {
        quiet = 0
        if current == last, current != Self.taken,
          answering.compareExchange(expected: current, desired: Self.taken, ordering: .sequentiallyConsistent).exchanged
        {
          passLead()
        }
      }
      last = current
      guard quiet >= 20 else { continue }
      isSupervised.store(false, ordering: .sequentiallyConsistent)
      // The thread of a request that came just before found a supervisor and started none.
      if answering.load(ordering: .sequentiallyConsistent) == 0 { return }
      isSupervised.store(true, ordering: .sequentiallyConsistent)
      quiet = 0
    }
    // Seen once more by `supervise()`.
    ends.signal()
  }
}
