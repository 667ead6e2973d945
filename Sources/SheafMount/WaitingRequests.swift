import Dispatch
import Fuse
import SheafLibrary
import SheafModel
import Synchronization

/// Requests of a mount that wait for contents which a hub has. None of them holds a thread.
///
/// To forget an inode's pages the kernel waits for the reads of the inode. So whoever has it do so has the requests that
/// wait for the inode answered first (``end(of:with:)``).
final class WaitingRequests: Sendable {
  /// Why a request waits no longer, other than that its contents are here.
  private struct Waiting {
    let node: NodeID
    let task: Task<Void, Never>
    var reason: Errno?
  }

  private struct State {
    var next: UInt64 = 1
    var waiting: [UInt64: Waiting] = [:]
    /// Requests that were interrupted before they waited.
    var interrupted: Set<UInt64> = []
    var hasEnded = false
  }

  private let source: (any ContentsSource)?
  private let queue = DispatchQueue(label: "sheaf.contents", attributes: .concurrent)
  private let state = Mutex(State())

  init(source: (any ContentsSource)?) { self.source = source }

  /// A number for a request that may have to wait.
  func newRequest() -> UInt64 {
    state.withLock { state in
      defer { state.next += 1 }
      return state.next
    }
  }

  /// Has contents fetched, and calls `done` on another thread: with nil once the request can be tried again.
  func wait(
    for absent: AbsentContents, _ node: NodeID, _ request: UInt64, _ done: @escaping @Sendable (Errno?) -> Void
  ) {
    let isOver = state.withLock { state in
      if state.hasEnded || state.interrupted.remove(request) != nil { return true }
      let task = Task { [source] in
        var problem: Errno?
        do {
          guard let source else { throw SheafError(.unreachable) }
          try await source.fetch(absent)
        } catch let error as SheafError {
          // The version is no more; the document has another one.
          problem = error.kind == .gone ? .staleFileHandle : Errno(error.kind)
        } catch {
          problem = .interrupted
        }
        let reason = remove(request)
        let outcome = problem == .interrupted ? reason ?? problem : problem
        queue.async { done(outcome) }
      }
      state.waiting[request] = Waiting(node: node, task: task)
      return false
    }
    if isOver { done(.interrupted) }
  }

  private func remove(_ request: UInt64) -> Errno? {
    state.withLock { $0.waiting.removeValue(forKey: request)?.reason }
  }

  /// Answers a request whose caller got a signal.
  func interrupt(_ request: UInt64) {
    let task = state.withLock { state -> Task<Void, Never>? in
      guard let waiting = state.waiting[request] else {
        state.interrupted.insert(request)
        return nil
      }
      return waiting.task
    }
    task?.cancel()
  }

  /// Forgets a request that got its answer.
  func forget(_ request: UInt64) { state.withLock { _ = $0.interrupted.remove(request) } }

  /// Answers those that wait for contents of nodes.
  func end(_ isMeant: (NodeID) -> Bool, with reason: Errno) {
    let tasks = state.withLock { state in
      let requests = state.waiting.keys.filter { state.waiting[$0].map { isMeant($0.node) } ?? false }
      for request in requests { state.waiting[request]?.reason = reason }
      return requests.compactMap { state.waiting[$0]?.task }
    }
    for task in tasks { task.cancel() }
  }

  /// Whether anything waits.
  var isEmpty: Bool { state.withLock { $0.waiting.isEmpty } }

  /// Answers all: the mount is gone.
  func endAll() {
    state.withLock { $0.hasEnded = true }
    end({ _ in true }, with: .notConnected)
  }
}

/// What came of a request.
enum Attempt<Value> {
  case done(Value)
  case absent(AbsentContents)
  case failed(Errno)

  init(_ body: () throws -> Value) {
    do {
      self = .done(try body())
    } catch let absent as AbsentContents {
      self = .absent(absent)
    } catch let error as SheafError {
      self = .failed(Errno(error.kind))
    } catch let error as Errno {
      self = .failed(error)
    } catch {
      self = .failed(.inputOutput)
    }
  }
}

/// A reply that another thread gives, at some time.
private final class HeldReply<Reply: ~Copyable & Sendable>: Sendable {
  private let reply: Mutex<Reply?>

  init(_ reply: consuming Reply) { self.reply = Mutex(reply) }

  func take() -> Reply? { reply.withLock { $0.take() } }
}

extension AccountFileSystem {
  /// Answers a request now, or once the contents that it needs are here.
  ///
  /// - Parameters:
  ///   - node: Of which it needs contents.
  ///   - body: Does what was asked for; it is called again after it threw ``AbsentContents``.
  func answer<Reply: InterruptibleReply & ~Copyable, Value: Sendable>(
    _ node: NodeID, _ reply: consuming Reply, _ body: @escaping @Sendable () throws -> Value,
    _ give: @escaping @Sendable (consuming Reply, Result<Value, Errno>) -> Void
  ) {
    switch Attempt(body) {
    case .done(let value): give(reply, .success(value))
    case .failed(let error): give(reply, .failure(error))
    case .absent(let absent): answerLater(node, reply, absent, body, give)
    }
  }

  /// As ``answer(_:_:_:_:)``, once the contents are here that were found to be missing.
  func answerLater<Reply: InterruptibleReply & ~Copyable, Value: Sendable>(
    _ node: NodeID, _ reply: consuming Reply, _ absent: AbsentContents,
    _ body: @escaping @Sendable () throws -> Value,
    _ give: @escaping @Sendable (consuming Reply, Result<Value, Errno>) -> Void
  ) {
    let request = waiting.newRequest()
    reply.whenInterrupted { [waiting] in waiting.interrupt(request) }
    wait(node, request, HeldReply(reply), absent, body, give)
  }

  private func wait<Reply: InterruptibleReply & ~Copyable, Value: Sendable>(
    _ node: NodeID, _ request: UInt64, _ reply: HeldReply<Reply>, _ absent: AbsentContents,
    _ body: @escaping @Sendable () throws -> Value,
    _ give: @escaping @Sendable (consuming Reply, Result<Value, Errno>) -> Void
  ) {
    waiting.wait(for: absent, node, request) { [self] problem in
      let result: Result<Value, Errno>
      switch problem.map(Attempt.failed) ?? Attempt(body) {
      case .done(let value): result = .success(value)
      case .failed(let error): result = .failure(error)
      case .absent(let next): return wait(node, request, reply, next, body, give)
      }
      waiting.forget(request)
      if let reply = reply.take() { give(reply, result) }
    }
  }
}
