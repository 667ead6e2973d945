import Foundation
package import Fuse
import Logging
package import SheafLibrary
package import SheafModel
import Synchronization

package typealias MountFolder = Fuse.MountFolder
package typealias Place = Fuse.Place
package typealias Privileges = Fuse.Privileges

/// A mount of one account of a library, served by threads of this process.
package final class LibraryMount: Sendable {
  /// How to mount.
  package struct Options: Sendable {
    package var readOnly = false
    /// Whether users of the machine other than the mounting one may use it, as far as the modes of the files allow.
    package var allowOther = false
    /// Further options for mount(8), as `-o` takes them.
    package var extra: [String] = []
    /// The Linux user to whom root gives the mount: only they and root get in, and everything shows as theirs.
    package var owner: (uid: UInt32, gid: UInt32)?

    package init() {}
  }

  package let account: AccountHandle
  private let library: any InodeInterface
  private let session: Session
  private let invalidator: Invalidator
  private let restrictedFolders: RestrictedFolders
  private let changedFolders: ChangedFolders
  private let repeater: Repeater
  private let waiting: WaitingRequests
  private let isReadOnly: Bool
  private let door: Int
  private let ended = Mutex<(isEnded: Bool, actions: [@Sendable () -> Void])>((false, []))

  /// Options that say what Sheaf does; libfuse is not given them.
  private static let ownOptions: Set<String> = ["nodiratime", "default_permissions", namedAttributes]
  /// Leaves the attributes that Sheaf computes out of listings, so that programs which copy attributes do not copy
  /// them.
  private static let namedAttributes = "xattrs=named"

  /// Threads that answer; some of them may wait for invalidations of other mounts.
  private static let threads = 10

  /// Prepares a mount.
  ///
  /// - Throws: `notFound` for an account that the library does not have; `invalid` for unknown options.
  ///
  /// - Parameter contents: Who fetches contents that are not on this machine; nil where nobody does.
  package init(
    library: any InodeInterface, contents: (any ContentsSource)? = nil, account: AccountHandle, options: Options
  ) throws {
    self.library = library
    self.account = account
    isReadOnly = options.readOnly
    let documents = try library.documents(of: account)
    let number = try library.number(of: account)
    let foreignNodes = ForeignNodes()
    let user =
      options.owner.map { Caller.User(uid: $0.uid, gid: $0.gid, ownsAll: true) }
      ?? .init(uid: getuid(), gid: getgid())
    let allowsOthers = options.allowOther || options.owner != nil
    // If others get into the mount, the kernel checks who may go below its root.
    let kernelChecks =
      allowsOthers || !KernelRelease.expiresNames || options.extra.contains("default_permissions")
    // Then no call of the kernel for this process waits for a user of the mount (``Invalidator``).
    let expiresNames = allowsOthers && KernelRelease.expiresNames
    let restrictedFolders = RestrictedFolders(library: library, account: number, user: kernelChecks ? nil : user)
    self.restrictedFolders = restrictedFolders
    let changedFolders = ChangedFolders(expiresNames: expiresNames)
    self.changedFolders = changedFolders
    let waiting = WaitingRequests(source: contents)
    self.waiting = waiting
    let invalidator = Invalidator(
      library: library, account: number, foreignNodes: foreignNodes, restrictedFolders: restrictedFolders,
      changedFolders: changedFolders, waiting: waiting)
    self.invalidator = invalidator
    let repeater = Repeater(library: library, account: number, changedFolders: changedFolders)
    self.repeater = repeater
    door = library.observe(account: number) { news in
      // Whoever is told of a change and looks finds it: the kernel forgets what it had before.
      invalidator.post(news.map(\.change))
      repeater.post(news)
    }
    var mountOptions = SessionOptions(source: library.location.path)
    mountOptions.allowOther = allowsOthers
    mountOptions.defaultPermissions = kernelChecks
    mountOptions.readOnly = options.readOnly
    mountOptions.extra = options.extra.filter { !Self.ownOptions.contains($0) }
    do {
      session = try Session(
        AccountFileSystem(
          library: library, account: number, documents: documents, door: door, user: user, foreignNodes: foreignNodes,
          restrictedFolders: restrictedFolders, changedFolders: changedFolders, keepsListings: !expiresNames,
          directWrites: DirectWrites(invalidator: invalidator),
          accessTimes: AccessTimes(options.extra), listsComputed: !options.extra.contains(Self.namedAttributes),
          repeater: repeater, waiting: waiting),
        options: mountOptions,
        logger: Logger(label: "sheaf.fuse"))
    } catch {
      library.endObserving(door)
      throw SheafError(.invalid, subject: "mount options", reason: error.reason)
    }
  }

  /// Where it is mounted: an absolute path without symbolic links.
  package var mountpoint: String { session.mountpoint }

  package var isMounted: Bool { session.isMounted }

  /// Mounts, and returns once the mount answers.
  ///
  /// - Throws: `inputOutput` with the words of the system or fusermount3.
  package func start(on folder: MountFolder) throws {
    let mountpoint = folder.path
    do {
      try session.mount(on: folder)
    } catch {
      library.endObserving(door)
      throw SheafError(.inputOutput, subject: mountpoint, reason: error.reason)
    }
    changedFolders.connect(session.notifier)
    invalidator.connect(session.notifier, door: door)
    restrictedFolders.connect(session.notifier)
    let thread = Thread { [self] in
      do {
        try session.run(threads: Self.threads)
      } catch {
        Logger(label: "sheaf.mount").error("the mount ended", metadata: ["error": "\(error)"])
      }
      finish()
    }
    thread.name = "sheaf-mount"
    thread.start()
    guard session.waitUntilReady() else {
      throw SheafError(.inputOutput, subject: mountpoint, reason: "the mount ended before it answered")
    }
    // A read-only mount lets nobody make the calls that would tell its watchers.
    if !isReadOnly { repeater.connect(session.notifier, session.loopbackCaller()) }
  }

  /// Saves every document and unmounts.
  ///
  /// - Parameter lazily: Whether a mount in use goes too, as soon as its users let go of it.
  /// - Throws: `busy` while something is open there and not `lazily`.
  package func unmount(lazily: Bool) throws {
    repeater.pause()
    do {
      try session.unmount(lazily: lazily)
    } catch {
      repeater.resume()
      throw SheafError(.busy, subject: mountpoint, reason: error.reason)
    }
  }

  /// Takes away the dead mount that a killed process left at an absolute path without symbolic links.
  ///
  /// - Throws: `busy` with the words of the system or fusermount3.
  package static func clear(at mountpoint: String) throws(SheafError) {
    do {
      try Unmounter.detach(at: mountpoint)
    } catch {
      throw SheafError(
        .busy, subject: mountpoint, reason: "the dead mount there cannot be cleared: \(error.reason)",
        advice: "clear it as root: umount -l \(mountpoint)")
    }
  }

  /// Cuts a mount whose process was killed, and cannot end while programs wait for its answers.
  ///
  /// - Throws: `notPermitted` for a mount of another user.
  package static func abort(_ mount: MountTable.Entry) throws(SheafError) {
    do {
      try Unmounter.abort(mount)
    } catch {
      throw SheafError(.notPermitted, subject: error.mountpoint, reason: error.reason)
    }
  }

  /// Calls `action` once the mount is gone, or at once where it is.
  package func whenEnded(_ action: @escaping @Sendable () -> Void) {
    let isEnded = ended.withLock { state in
      if !state.isEnded { state.actions.append(action) }
      return state.isEnded
    }
    if isEnded { action() }
  }

  /// Ends the mount at once; programs that use it get ENOTCONN.
  package func stop() { session.exit() }

  private func finish() {
    waiting.endAll()
    invalidator.disconnect()
    restrictedFolders.disconnect()
    changedFolders.disconnect()
    repeater.disconnect()
    library.endObserving(door)
    let actions = ended.withLock { state in
      state.isEnded = true
      defer { state.actions = [] }
      return state.actions
    }
    for action in actions { action() }
  }
}
