import Dispatch
import Fuse
import SheafLibrary
import SheafModel
import Synchronization

/// Tells a mount's kernel what changed by other doors, on a thread of its own (rule 5 of ../shared/KERNEL.md's rules:
/// no lock is held, and no request waits for it).
final class Invalidator: Sendable {
  private let queue = DispatchQueue(label: "sheaf.invalidate")
  /// Changes that wait; told once, however often they came.
  private let waiting = Mutex<Set<LibraryChange>>([])
  private let notifier = Mutex<Notifier?>(nil)

  func connect(_ notifier: Notifier) { self.notifier.withLock { $0 = notifier } }

  func disconnect() { notifier.withLock { $0 = nil } }

  func post(_ changes: [LibraryChange]) {
    let wasEmpty = waiting.withLock { waiting in
      defer { waiting.formUnion(changes) }
      return waiting.isEmpty
    }
    if wasEmpty { queue.async { self.drain() } }
  }

  private func drain() {
    let changes = waiting.withLock { waiting in
      defer { waiting = [] }
      return waiting
    }
    guard let notifier = notifier.withLock({ $0 }) else { return }
    for change in changes {
      // What the kernel does not know needs no invalidation, and a mount that ends none either.
      switch change {
      case .contents(let ino): _ = try? notifier.invalidateInode(Node.inode(ino).id, offset: 0, length: 0)
      case .attributes(let ino): _ = try? notifier.invalidateInode(Node.inode(ino).id, offset: -1, length: 0)
      case .entry(let parent, let name):
        _ = try? notifier.invalidateEntry(FileName(name), in: Node.inode(parent).id)
        _ = try? notifier.invalidateInode(Node.inode(parent).id, offset: 0, length: 0)
      }
    }
  }
}
