import Dispatch
import Fuse
import Glibc
import SheafLibrary
import SheafModel
import Synchronization

/// Has a mount's kernel tell those who watch there (inotify(7)) what was done by other doors.
///
/// The kernel tells watchers of the calls that it makes itself. So a thread of this process, a ``Visitor``, makes each call
/// once more in this mount, where it is known by its id and answered without effect: a call that made a name finds none
/// yet, one that took a name away finds it still there.
///
/// Rules:
/// 1. Nobody waits for it. What waits is limited, equal news of a file come once, and what is too much is dropped.
/// 2. Only what the kernel knows is worth a call: whoever watches a folder or a file holds its inode there.
/// 3. For the visitor alone the folder is as it was. It is told so without a time to keep it, so that all others go on
///    asking, and get the truth.
/// 4. What it is told of modes, to be let through by the kernel where only reading is allowed, is kept no longer. The
///    library answers all others as ever.
/// 5. It holds the mount while a call lasts, and not while the mount is to be unmounted (``pause()``).
/// 6. A call is answered only if it is about the inode that the change was of: since then the kernel's name may lead to
///    another one, which it would take for changed, gone, or of another type. So a call on names counts only where the
///    visitor was told in it what they lead to; the kernel has their folders to itself from then on until it asks.
final class Repeater: Sendable {
  /// News that wait at most.
  private static let limit = 4096
  /// How often a call is made that did not get through because someone looked in between.
  private static let attempts = 3
  /// The handle of what the visitor opens.
  static let handle = FileHandle(rawValue: .max)

  private struct State {
    var waiting: [LibraryNews] = []
    var isRunning = false
    var isPaused = false
    var kernel: (notifier: Notifier, visitor: Visitor)?
    var errand: Errand?
    /// Where the visitor was told what names led to, in the call that it makes.
    var shown: Set<Errand.Spot> = []
    var wasServed = false
  }

  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "sheaf.repeat")
  private let library: Library
  private let account: Int64
  private let expiresNames: Bool
  /// Whether the visitor is about a call, so that requests may be its own.
  private let isBusy = Atomic<Bool>(false)

  /// - Parameter expiresNames: Whether all names are forgotten where one is.
  init(library: Library, account: Int64, expiresNames: Bool) {
    self.expiresNames = expiresNames
    self.library = library
    self.account = account
  }

  func connect(_ notifier: Notifier, _ visitor: Visitor?) {
    state.withLock { $0.kernel = visitor.map { (notifier, $0) } }
  }

  func disconnect() {
    let visitor = state.withLock { state in
      defer {
        state.kernel = nil
        state.waiting = []
      }
      return state.kernel?.visitor
    }
    visitor?.end()
  }

  /// Seconds that a call is waited for at most. One may last for as long as a user of the mount likes, who reads the folder
  /// that it is about into memory that does not answer.
  private static let patience = 2

  /// Stays out of the mount, and returns once it is out, or where a call does not end.
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

  /// Has watchers told, sooner or later.
  func post(_ news: [LibraryNews]) {
    state.withLock { state in
      guard state.kernel != nil else { return }
      for piece in news where piece.call != nil && !Self.isWaiting(piece, in: state.waiting) {
        if state.waiting.count < Self.limit { state.waiting.append(piece) }
      }
    }
    start()
  }

  /// Whether the same is to be told already, with nothing of that file after it.
  private static func isWaiting(_ news: LibraryNews, in waiting: [LibraryNews]) -> Bool {
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
      let next = state.withLock { state -> (LibraryNews, Notifier, Visitor)? in
        guard !state.isPaused, let kernel = state.kernel, !state.waiting.isEmpty else {
          state.isRunning = false
          return nil
        }
        return (state.waiting.removeFirst(), kernel.notifier, kernel.visitor)
      }
      guard let (news, notifier, visitor) = next else { return }
      tell(news, notifier, visitor)
    }
  }

  // MARK: - Errands

  private func tell(_ news: LibraryNews, _ notifier: Notifier, _ visitor: Visitor) {
    guard let (visit, errand) = plan(news) else { return }
    let spots = Array(errand.view.keys)
    // Rule 2. That the attributes are dropped has the visitor's own be asked for (rule 4).
    let isKnown = spots.map { (try? notifier.invalidateInode($0.folder, offset: -1)) ?? false }
    let isOpen = (try? notifier.invalidateInode(errand.made.node.id, offset: -1)) ?? false
    guard isKnown.contains(true) || isOpen else { return }
    for _ in 0..<Self.attempts {
      if news.changesNames {
        for spot in spots { notifier.forget(spot.name, in: spot.folder, withAllOthers: expiresNames) }
      }
      let isOver = state.withLock { state in
        (state.errand, state.shown, state.wasServed) = (errand, [], false)
        return state.kernel == nil
      }
      if isOver { return }
      isBusy.store(true, ordering: .releasing)
      visitor.make(visit)
      isBusy.store(false, ordering: .releasing)
      let wasServed = state.withLock { state in
        state.errand = nil
        return state.wasServed
      }
      if wasServed { return }
      for spot in spots { _ = try? notifier.invalidateInode(spot.folder, offset: -1) }
    }
  }

  /// The call that repeats a change, with what its caller is to find; nil where there is none.
  private func plan(_ news: LibraryNews) -> (Visit, Errand)? {
    guard let call = news.call else { return nil }
    if case .sharedOwner(let owner) = news.change {
      let name = FileName(Array(owner.handle.description.utf8))
      let place = Visit.Place(folders: [FileName(AccountFileSystem.sharedName)], node: Node.shared.id, name: name)
      var errand = Errand(made: .owner(owner.account, isGone: !owner.isThere))
      errand.view[.init(folder: place.node, name: name)] = .some(owner.isThere ? nil : errand.made)
      return (Visit(call, at: place), errand)
    }
    guard let subject = news.named, let place = place(subject.place, subject.ino) else { return nil }
    var errand = Errand(made: .inode(subject, lostLinks: 0))
    let spot = Errand.Spot(folder: place.node, name: place.name)
    switch news.change {
    case .made: errand.view[spot] = .some(nil)
    case .removed: errand.view[spot] = Errand.Former.inode(subject, lostLinks: 1)
    default: errand.view[spot] = errand.made
    }
    guard case .renamed(_, let target, let replaced, let exchanged) = news.change else {
      return (Visit(call, at: place), errand)
    }
    guard let new = self.place(target, subject.ino) else { return nil }
    errand.view[.init(folder: new.node, name: new.name)] = .some(
      replaced.map { .inode($0, lostLinks: exchanged ? 0 : 1) })
    return (Visit(.rename(to: new, exchanges: exchanged), at: place), errand)
  }

  private func place(_ place: LibraryPlace, _ ino: Int64) -> Visit.Place? {
    guard let (folders, found) = library.whereabouts(of: place, ino, for: account) else { return nil }
    let node: Node =
      switch found.folder {
      case .inode(0): .root
      case .inode(let ino): .inode(ino)
      case .shared(let owner): .sharedOwner(owner)
      }
    return Visit.Place(folders: folders.map { FileName($0) }, node: node.id, name: FileName(found.name))
  }

  // MARK: - Answers

  /// What the visitor is about, if it is who asks.
  func errand(of caller: RequestContext) -> Errand? {
    guard isBusy.load(ordering: .acquiring), caller.pid != 0 else { return nil }
    return state.withLock { $0.kernel?.visitor.thread == caller.pid ? $0.errand : nil }
  }

  /// What a name led to before the change that the visitor repeats, if it is who asks and the change was of that name.
  func former(_ name: FileName, in folder: NodeID, for caller: RequestContext) -> Errand.Former?? {
    let spot = Errand.Spot(folder: folder, name: name)
    guard let former = errand(of: caller)?.view[spot] else { return nil }
    state.withLock { _ = $0.shown.insert(spot) }
    return former
  }

  /// What the visitor repeats, if its call on a node is what this is; the kernel tells of it then.
  ///
  /// - Throws: ESTALE where the name that it used leads to another node by now (rule 6), so that the kernel looks it up anew.
  func serve(_ node: NodeID, _ caller: RequestContext) throws(Errno) -> Errand? {
    guard let errand = errand(of: caller) else { return nil }
    guard node == errand.made.node.id else { throw .staleFileHandle }
    state.withLock { $0.wasServed = true }
    return errand
  }

  /// What the visitor repeats, if its call on names is what this is; the kernel tells of it then.
  ///
  /// - Throws: ESTALE where it was not told what they lead to (rule 6).
  func serveNames(_ caller: RequestContext) throws(Errno) -> Errand? {
    guard let errand = errand(of: caller) else { return nil }
    let wasShown = state.withLock { state in
      state.wasServed = state.shown.isSuperset(of: errand.view.keys)
      return state.wasServed
    }
    guard wasShown else { throw .staleFileHandle }
    return errand
  }
}

/// What a visitor finds, and gets, on one call.
struct Errand: Sendable {
  struct Spot: Hashable {
    let folder: NodeID
    let name: FileName
  }

  /// What a name led to.
  enum Former {
    /// An inode as it was, with the names that it lost since.
    case inode(NamedInode, lostLinks: UInt32)
    /// `Shared/OWNER`; where it is gone, something in its place.
    case owner(Int64, isGone: Bool)

    var node: Node {
      switch self {
      case .inode(let inode, _): .inode(inode.ino)
      case .owner(let account, let isGone): isGone ? .formerOwner(account) : .sharedOwner(account)
      }
    }
  }

  /// What the call makes.
  let made: Former
  /// What names led to before the change: nil where there was none.
  var view: [Spot: Former?] = [:]
}

extension LibraryNews {
  /// The inode that it is of, with its place.
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

  /// The call that has the kernel tell of it; nil where there is none. That of a renaming needs the new place besides.
  fileprivate var call: Visit.Call? {
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
    case .overwriting, .appearance, .sharedOwner, .access: return nil
    }
  }
}
