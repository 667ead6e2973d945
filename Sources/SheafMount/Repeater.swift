import DequeModule
import Dispatch
import Fuse
import Glibc
import SheafLibrary
import SheafModel
import Synchronization

/// Makes a mount's kernel tell its watchers (inotify(7)) of changes by other doors.
///
/// The kernel tells watchers of the calls that it makes itself. So a thread of this process, a ``LoopbackCaller``,
/// makes each call once more in this mount. The mount knows it by its id and answers it without effect: a call that
/// made a name finds none yet, and a call that took a name away finds it still there.
///
/// Rules:
/// 1. Nobody waits for it. The queue is limited: equal news of a file wait once, and news past the limit are dropped.
/// 2. Only inodes that the kernel knows are worth a call: a watcher of a folder or a file holds its inode there. The
///    kernel's attributes of them are dropped only if a call does not get through, so that it asks for the loopback
///    caller's own. Whoever asks for attributes while they are dropped, reads on with the former size.
/// 3. For the loopback caller alone the folder is as it was. The kernel may keep none of these answers, so that all
///    others go on asking and get the truth.
/// 4. Nor may the kernel keep the modes that it shows the loopback caller, so that the kernel lets it through where
///    only reading is allowed. The library answers all others as ever.
/// 5. It holds the mount while a call lasts, and not while the mount is to be unmounted (``pause()``).
/// 6. A call is answered only if it concerns the inode that changed: the kernel's name may lead to another one by now,
///    which the kernel would take for changed, gone, or of another type. So a call on names counts only if the loopback
///    caller looked these names up in it: from the look-up until the call the kernel keeps their folders locked.
/// 7. Where very many files are made, the kernel forgets each once it was told: it would keep all of them in memory, and
///    so would the library, though nobody asked for them.
final class Repeater: Sendable {
  /// Most news that wait.
  private static let limit = 4096
  /// News that wait behind one, from which on rule 7 holds.
  private static let many = 16
  /// How often a call is made that does not get through because another program looked the name up in between.
  private static let attempts = 4
  /// The handle of the loopback caller's open files.
  static let handle = FileHandle(rawValue: .max)

  private struct State {
    var waiting: Deque<LibraryNews> = []
    var isRunning = false
    var isPaused = false
    var kernel: (notifier: Notifier, loopback: LoopbackCaller)?
    var replay: Replay?
    /// The names that the loopback caller looked up in its present call.
    var shown: Set<Replay.Entry> = []
    var wasServed = false
  }

  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "sheaf.repeat")
  private let library: any InodeInterface
  private let account: Int64
  private let changedFolders: ChangedFolders
  /// Whether the loopback caller is making a call, so that requests may be its own.
  private let isBusy = Atomic<Bool>(false)

  init(library: any InodeInterface, account: Int64, changedFolders: ChangedFolders) {
    self.changedFolders = changedFolders
    self.library = library
    self.account = account
  }

  func connect(_ notifier: Notifier, _ loopback: LoopbackCaller?) {
    state.withLock { $0.kernel = loopback.map { (notifier, $0) } }
  }

  func disconnect() {
    let loopback = state.withLock { state in
      defer {
        state.kernel = nil
        state.waiting = []
      }
      return state.kernel?.loopback
    }
    loopback?.end()
  }

  /// Seconds to wait for a call at most. A user of the mount can make it last as long as they like, by reading its
  /// folder into memory that does not answer.
  private static let patience = 2

  /// Keeps the loopback caller out of the mount, and returns once it is out, or after the patience with a call that
  /// does not end.
  func pause() {
    state.withLock { $0.isPaused = true }
    let isOut = DispatchSemaphore(value: 0)
    queue.async { isOut.signal() }
    _ = isOut.wait(timeout: .now() + .seconds(Self.patience))
  }

  func resume() {
    state.withLock { $0.isPaused = false }
    start()
  }

  /// Queues news for the watchers.
  func post(_ news: [LibraryNews]) {
    state.withLock { state in
      guard state.kernel != nil else { return }
      for piece in news where piece.operation != nil && !Self.isWaiting(piece, in: state.waiting) {
        if state.waiting.count < Self.limit { state.waiting.append(piece) }
      }
    }
    start()
  }

  /// Whether the same news wait already, with nothing of that file after them.
  private static func isWaiting(_ news: LibraryNews, in waiting: Deque<LibraryNews>) -> Bool {
    guard let subject = news.subject else { return false }
    let last = waiting.suffix(16).last { $0.named?.ino == subject.ino }
    return last == news
  }

  private func start() {
    let begins = state.withLock { state in
      guard !state.isRunning, !state.isPaused, !state.waiting.isEmpty else { return false }
      state.isRunning = true
      return true
    }
    if begins { queue.async { self.drain() } }
  }

  private func drain() {
    while true {
      let next = state.withLock { state -> (LibraryNews, Notifier, LoopbackCaller, left: Int)? in
        guard !state.isPaused, let kernel = state.kernel, let news = state.waiting.popFirst() else {
          state.isRunning = false
          return nil
        }
        return (news, kernel.notifier, kernel.loopback, state.waiting.count)
      }
      guard let (news, notifier, loopback, left) = next else { return }
      tell(news, notifier, loopback)
      if left >= Self.many { forgetMade(news) }
    }
  }

  // MARK: - Replaying

  private func tell(_ news: LibraryNews, _ notifier: Notifier, _ loopback: LoopbackCaller) {
    guard let (call, replay) = plan(news) else { return }
    let entries = Array(replay.view.keys)
    let nodes = entries.map(\.folder) + [replay.made.node.id]
    guard nodes.contains(where: { (try? notifier.knows($0)) ?? false }) else { return }
    for attempt in 0..<Self.attempts {
      if attempt > 0 { for node in nodes { _ = try? notifier.invalidateInode(node, offset: -1) } }
      if news.changesNames {
        for entry in entries { changedFolders.forget(entry.name, in: entry.folder) }
      }
      let isOver = state.withLock { state in
        (state.replay, state.shown, state.wasServed) = (replay, [], false)
        return state.kernel == nil
      }
      if isOver { return }
      isBusy.store(true, ordering: .releasing)
      loopback.make(call)
      isBusy.store(false, ordering: .releasing)
      let wasServed = state.withLock { state in
        state.replay = nil
        return state.wasServed
      }
      if wasServed { return }
    }
  }

  /// Has the kernel forget a file that it knows by the loopback caller's call (rule 7).
  private func forgetMade(_ news: LibraryNews) {
    guard case .made(let inode) = news.change, inode.mode & S_IFMT != S_IFDIR, let place = place(inode.place, inode.ino)
    else { return }
    changedFolders.forget(place.name, in: place.node)
  }

  /// The call that repeats a change, with the answers for it; nil if there is none.
  private func plan(_ news: LibraryNews) -> (LoopbackCall, Replay)? {
    guard let operation = news.operation else { return nil }
    if case .sharedOwner(let owner) = news.change {
      let name = FileName(Array(owner.handle.description.utf8))
      let place = LoopbackCall.Place(
        folders: [FileName(AccountFileSystem.sharedName)], node: Node.shared.id, name: name)
      var replay = Replay(made: .owner(owner.account, isGone: !owner.isThere))
      replay.view[.init(folder: place.node, name: name)] = .some(owner.isThere ? nil : replay.made)
      return (LoopbackCall(operation, at: place), replay)
    }
    guard let subject = news.named, let place = place(subject.place, subject.ino) else { return nil }
    var replay = Replay(made: .inode(subject, lostLinks: 0))
    let entry = Replay.Entry(folder: place.node, name: place.name)
    switch news.change {
    case .made: replay.view[entry] = .some(nil)
    case .removed: replay.view[entry] = Replay.Former.inode(subject, lostLinks: 1)
    default: replay.view[entry] = replay.made
    }
    guard case .renamed(_, let target, let replaced, let exchanged) = news.change else {
      return (LoopbackCall(operation, at: place), replay)
    }
    guard let new = self.place(target, subject.ino) else { return nil }
    replay.view[.init(folder: new.node, name: new.name)] = .some(
      replaced.map { .inode($0, lostLinks: exchanged ? 0 : 1) })
    return (LoopbackCall(.rename(to: new, exchanges: exchanged), at: place), replay)
  }

  private func place(_ place: LibraryPlace, _ ino: Int64) -> LoopbackCall.Place? {
    guard let (folders, found) = library.whereabouts(of: place, ino, for: account) else { return nil }
    let node: Node =
      switch found.folder {
      case .inode(0): .root
      case .inode(let ino): .inode(ino)
      case .shared(let owner): .sharedOwner(owner)
      }
    return LoopbackCall.Place(folders: folders.map { FileName($0) }, node: node.id, name: FileName(found.name))
  }

  // MARK: - Answers

  /// The change that the loopback caller repeats, if it makes the request.
  func replay(of caller: RequestContext) -> Replay? {
    guard isBusy.load(ordering: .acquiring), caller.pid != 0 else { return nil }
    return state.withLock { $0.kernel?.loopback.thread == caller.pid ? $0.replay : nil }
  }

  /// The node of a name before the change that the loopback caller repeats, if it makes the request and the change was
  /// of that name.
  func former(_ name: FileName, in folder: NodeID, for caller: RequestContext) -> Replay.Former?? {
    let entry = Replay.Entry(folder: folder, name: name)
    guard let former = replay(of: caller)?.view[entry] else { return nil }
    state.withLock { _ = $0.shown.insert(entry) }
    return former
  }

  /// The change that the loopback caller repeats, if this is its call on the node; the kernel tells the watchers then.
  ///
  /// - Throws: ESTALE if the name that it used leads to another node by now (rule 6), so that the kernel looks it up
  ///   anew.
  func serve(_ node: NodeID, _ caller: RequestContext) throws(Errno) -> Replay? {
    guard let replay = replay(of: caller) else { return nil }
    guard node == replay.made.node.id else { throw .staleFileHandle }
    state.withLock { $0.wasServed = true }
    return replay
  }

  /// The change that the loopback caller repeats, if this is its call on names; the kernel tells the watchers then.
  ///
  /// - Throws: ESTALE if it did not look the names up in this call (rule 6).
  func serveNames(_ caller: RequestContext) throws(Errno) -> Replay? {
    guard let replay = replay(of: caller) else { return nil }
    let wasShown = state.withLock { state in
      state.wasServed = state.shown.isSuperset(of: replay.view.keys)
      return state.wasServed
    }
    guard wasShown else { throw .staleFileHandle }
    return replay
  }
}

/// A change to repeat: the answers that the loopback caller gets on its call.
struct Replay: Sendable {
  struct Entry: Hashable {
    let folder: NodeID
    let name: FileName
  }

  /// The former node of a name.
  enum Former {
    /// An inode as it was, and how many names it lost since.
    case inode(NamedInode, lostLinks: UInt32)
    /// `Shared/OWNER`, or its stand-in if it is gone.
    case owner(Int64, isGone: Bool)

    var node: Node {
      switch self {
      case .inode(let inode, _): .inode(inode.ino)
      case .owner(let account, let isGone): isGone ? .formerOwner(account) : .sharedOwner(account)
      }
    }
  }

  /// The node that the call concerns.
  let made: Former
  /// The nodes of names before the change; nil for a name that did not exist.
  var view: [Entry: Former?] = [:]
}

extension LibraryNews {
  /// The inode that the news are of, with its place.
  fileprivate var named: NamedInode? {
    switch change {
    case .made(let inode), .removed(let inode), .renamed(let inode, _, _, _): inode
    default: subject
    }
  }

  fileprivate var changesNames: Bool {
    switch change {
    case .made, .removed, .renamed, .sharedOwner: true
    default: false
    }
  }

  /// The call that makes the kernel tell of it; nil if there is none. The call of a renaming also needs the new place.
  fileprivate var operation: LoopbackCall.Operation? {
    if case .sharedOwner(let owner) = change { return owner.isThere ? .makeFolder : .remove(isFolder: true) }
    guard let inode = named else { return nil }
    let type = inode.mode & S_IFMT
    switch change {
    case .made:
      switch type {
      case S_IFDIR: return .makeFolder
      case S_IFLNK: return .makeLink
      case S_IFBLK, S_IFCHR: return nil
      default: return .makeNode(type: type)
      }
    case .removed, .renamed: return .remove(isFolder: type == S_IFDIR)
    case .contents, .saved: return type == S_IFREG ? .modify : nil
    case .closed: return type == S_IFREG ? .closeAfterWriting : nil
    case .attributes: return type == S_IFLNK ? nil : .setMode
    case .overwriting, .appearance, .givenAway, .sharedOwner, .access: return nil
    }
  }
}
