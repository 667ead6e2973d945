import Dispatch
import Fuse
import SheafLibrary
import SheafModel
import Synchronization

/// Tells a mount's kernel of changes by other doors, on a thread of its own. No lock is held during an invalidation,
/// and the request that made the change waits for it a moment at most.
///
/// An invalidation may wait in its turn for a request of this mount, and that one for another mount's invalidation. So
/// a waiting request gives up after its patience: its answer is true, and the other kernels know a little later.
///
/// Changes of access do not wait for any others. If others than the mount's own user get in, the kernel forgets all
/// names at once (`FUSE_NOTIFY_INC_EPOCH`) and keeps no listings: to forget one name it takes the lock of the folder,
/// and to forget a listing the locks of its pages, and a reader of the folder can hold these for as long as they like.
final class Invalidator: Sendable {
  /// Changes that wait for their turn; told once, however often they came.
  private final class Line: Sendable {
    let queue = DispatchQueue(label: "sheaf.invalidate")
    let waiting = Mutex<Set<LibraryChange>>([])
  }

  private let changes = Line()
  private let changesOfAccess = Line()
  private let kernel = Mutex<(notifier: Notifier, door: Int)?>(nil)
  private let library: any InodeInterface
  private let account: Int64
  private let foreignNodes: ForeignNodes
  private let restrictedFolders: RestrictedFolders
  private let changedFolders: ChangedFolders
  private let waiting: WaitingRequests

  init(
    library: any InodeInterface, account: Int64, foreignNodes: ForeignNodes, restrictedFolders: RestrictedFolders,
    changedFolders: ChangedFolders, waiting: WaitingRequests
  ) {
    self.waiting = waiting
    self.changedFolders = changedFolders
    self.library = library
    self.account = account
    self.foreignNodes = foreignNodes
    self.restrictedFolders = restrictedFolders
  }

  func connect(_ notifier: Notifier, door: Int) { kernel.withLock { $0 = (notifier, door) } }

  func disconnect() { kernel.withLock { $0 = nil } }

  /// Passes changes on to the kernel, and waits for those that it has to know at once.
  ///
  /// - Parameter patience: for how many milliseconds to wait, instead of those that the kind of change says.
  func post(_ changes: [LibraryChange], patience: Int? = nil) {
    let deadline = (patience ?? changes.compactMap(\.patience).max()).map { DispatchTime.now() + .milliseconds($0) }
    let parts = [
      (changesOfAccess, changes.filter { $0 == .access }), (self.changes, changes.filter { $0 != .access }),
    ]
    let begun = parts.filter { !$1.isEmpty }.map { line, changes in
      line.waiting.withLock { $0.formUnion(changes) }
      let done = DispatchSemaphore(value: 0)
      line.queue.async {
        self.drain(line)
        done.signal()
      }
      return done
    }
    if let deadline { for done in begun { _ = done.wait(timeout: deadline) } }
  }

  private func drain(_ line: Line) {
    let changes = line.waiting.withLock { waiting in
      defer { waiting = [] }
      return waiting
    }
    guard !changes.isEmpty, let (notifier, door) = kernel.withLock({ $0 }) else { return }
    for change in changes { tell(change, by: notifier, door) }
  }

  // Nodes that the kernel does not know need no invalidation, and an ending mount needs none either.
  private func tell(_ change: LibraryChange, by notifier: Notifier, _ door: Int) {
    switch change {
    case .contents(let ino), .saved(let ino):
      waiting.end({ $0 == Node.inode(ino).id }, with: .staleFileHandle)
      _ = try? notifier.invalidateInode(Node.inode(ino).id, offset: 0, length: 0)
    case .overwriting(let ino, let bytes):
      waiting.end({ $0 == Node.inode(ino).id }, with: .staleFileHandle)
      let length = bytes.upperBound == .max ? 0 : Int64(bytes.count)
      _ = try? notifier.invalidateInode(Node.inode(ino).id, offset: bytes.lowerBound, length: length)
    case .attributes(let ino), .appearance(let ino):
      restrictedFolders.noteChange(of: ino)
      forgetAttributes(of: ino, by: notifier)
    case .closed: break
    case .givenAway(let inos):
      for ino in inos {
        let node = Node.inode(ino)
        let isSeen = isSeen(node)
        if !isSeen {
          library.locks.revoked(node.id.rawValue, door: door)
          waiting.end({ $0 == node.id }, with: .permissionDenied)
        }
        // The kernel has it from when it was the account's own.
        let isKnown = (try? notifier.invalidateInode(node.id, offset: isSeen ? -1 : 0, length: 0)) ?? false
        if isKnown { foreignNodes.note(node.id) }
      }
    case .made(let inode), .removed(let inode):
      forget(inode.place, by: notifier)
      // It has another number of links.
      forgetAttributes(of: inode.ino, by: notifier)
    case .renamed(let inode, let place, let replaced, _):
      forget(inode.place, by: notifier)
      forget(place, by: notifier)
      forgetAttributes(of: inode.ino, by: notifier)
      if let replaced { forgetAttributes(of: replaced.ino, by: notifier) }
    case .sharedOwner(let owner):
      forget(Array(owner.handle.description.utf8), in: .shared)
    case .access:
      // The library refuses already; now the kernel forgets, pages and mappings too (rule 5 of docs/ARCHITECTURE.md).
      if !waiting.isEmpty { waiting.end({ !isSeen(Node($0)) }, with: .permissionDenied) }
      for node in foreignNodes.nodes {
        let isSeen = isSeen(Node(node))
        if !isSeen { library.locks.revoked(node.rawValue, door: door) }
        _ = try? notifier.invalidateInode(node, offset: isSeen ? -1 : 0, length: 0)
      }
    }
  }

  /// Whether the mount's account sees a node of another one.
  private func isSeen(_ node: Node) -> Bool {
    switch node {
    case .inode(let ino), .pastLink(let ino): library.sees(ino, account)
    case .deleted(let ino): library.sees(deleted: ino, account)
    case .versionFile(let item, let number): library.sees(version: number, of: item, account)
    default: true
    }
  }

  private func forget(_ place: LibraryPlace, by notifier: Notifier) {
    switch place.folder {
    case .inode(let parent):
      forget(place.name, in: .inode(parent))
      _ = try? notifier.invalidateInode(Node.inode(parent).id, offset: 0, length: 0)
    case .shared(let owner): forget(place.name, in: .sharedOwner(owner))
    }
  }

  private func forget(_ name: [UInt8], in folder: Node) {
    changedFolders.forget(FileName(name), in: folder.id)
  }

  private func forgetAttributes(of ino: Int64, by notifier: Notifier) {
    _ = try? notifier.invalidateInode(Node.inode(ino).id, offset: -1, length: 0)
  }
}

extension LibraryChange {
  /// For how many milliseconds the request that made the change waits at most until the other kernels know; nil for
  /// writes, which come too often for that: two programs that write one page at a time would wait for each other. The
  /// close after them waits until they are told, too.
  fileprivate var patience: Int? {
    switch self {
    case .contents, .attributes, .appearance: nil
    case .made(let inode) where inode.place.isShared, .removed(let inode) where inode.place.isShared,
      .renamed(let inode, _, _, _) where inode.place.isShared:
      1000
    case .made, .removed, .renamed, .saved, .closed: 20
    case .overwriting: 100
    case .givenAway, .sharedOwner, .access: 1000
    }
  }
}

extension LibraryPlace {
  /// Whether it is an entry of `Shared/OWNER`.
  fileprivate var isShared: Bool { if case .shared = folder { true } else { false } }
}
