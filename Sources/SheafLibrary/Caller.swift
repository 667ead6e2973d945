internal import Foundation
import SheafModel
import SheafStore
import Synchronization

/// The user and process behind a request: the credentials that the kernel gives with it.
package struct Caller: Sendable {
  package let uid: UInt32
  package let gid: UInt32
  /// Bits that umask(2) took from the mode of what is made.
  package let umask: UInt32
  /// Thread id, as the kernel tells it; 0 for the kernel itself and for the API.
  package let thread: Int32
  /// The door by which the request came (``Library/observe(account:_:)``'s token), which knows what it changes; 0 for
  /// the API.
  package let door: Int
  /// The account whose door it is; nil for the library itself, which acts for the owner of what it touches.
  package let account: Int64?
  /// The Linux user as whose the door shows what others share; nil where it shows the user of the owner's file.
  package let user: User?
  /// Whether it is a replica, which shows what was done on other machines: their hub tells of that.
  let isReplica: Bool
  /// What a replica shows; nil where its hub does not say.
  let deed: Deed?
  private let supplementary: @Sendable () -> [UInt32]

  /// - Parameter groups: supplementary groups, asked for only where owner and group do not decide.
  package init(
    uid: UInt32, gid: UInt32, umask: UInt32 = 0, thread: Int32, door: Int, account: Int64? = nil, user: User? = nil,
    groups: @escaping @Sendable () -> [UInt32]
  ) {
    self.init(
      uid: uid, gid: gid, umask: umask, thread: thread, door: door, account: account, user: user, isReplica: false,
      deed: nil, groups: groups)
  }

  private init(
    uid: UInt32, gid: UInt32, umask: UInt32 = 0, thread: Int32, door: Int, account: Int64?, user: User? = nil,
    isReplica: Bool, deed: Deed?, groups: @escaping @Sendable () -> [UInt32]
  ) {
    self.isReplica = isReplica
    self.deed = deed
    self.umask = umask
    self.door = door
    self.account = account
    self.user = user
    self.uid = uid
    self.gid = gid
    self.thread = thread
    supplementary = groups
  }

  /// A Linux user, with their group.
  package struct User: Hashable, Sendable {
    package let uid: UInt32
    package let gid: UInt32
    /// Whether the account's own files are shown as theirs too: the mount was given to them.
    package let ownsAll: Bool

    package init(uid: UInt32, gid: UInt32, ownsAll: Bool = false) {
      self.uid = uid
      self.gid = gid
      self.ownsAll = ownsAll
    }
  }

  /// What somebody did to an item on another machine.
  struct Deed: Hashable, Sendable {
    /// The account that stands for them here.
    let person: Int64
    /// By the owner's clock, or the hub's.
    let time: Timestamp
  }

  /// The library itself.
  package static let library = Caller(uid: 0, gid: 0, thread: 0, door: 0, groups: { [] })

  /// An account that asks through the API.
  static func api(_ account: Int64) -> Caller {
    Caller(uid: 0, gid: 0, thread: 0, door: 0, account: account, groups: { [] })
  }

  /// The replica of an account, which does what was done on other machines.
  static func replica(_ account: Int64, _ deed: Deed? = nil) -> Caller {
    Caller(uid: 0, gid: 0, thread: 0, door: 0, account: account, isReplica: true, deed: deed, groups: { [] })
  }

  /// Whether a program goes on; false for 0, which is none. One that a user may not see counts as ended (proc(5),
  /// `hidepid`).
  static func lives(_ process: Int32) -> Bool { process > 0 && access("/proc/\(process)", F_OK) == 0 }

  /// The session of a program (getsid(2)); 0 for one that began outside the PID namespace, nil if the program ended.
  static func session(of process: Int32) -> Int32? {
    guard process > 0, case let session = getsid(process), session >= 0 else { return nil }
    return session
  }

  /// The process group of a program (getpgid(2)); 0 for one that began outside the PID namespace, nil if the program
  /// ended.
  static func group(of process: Int32) -> Int32? {
    guard process > 0, case let group = getpgid(process), group >= 0 else { return nil }
    return group
  }

  /// When a program began, in the kernel's ticks since the machine started (proc_pid_stat(5)); nil if it ended.
  static func start(of process: Int32) -> Int64? { state(of: process, field: 19) }

  /// The process that started a program, or that took its place (proc_pid_stat(5)); nil if the program ended.
  static func parent(of process: Int32) -> Int32? {
    let now = coarseTime
    if let known = parents.withLock({ $0[process] }), now - known.seen < parentLifetime { return known.parent }
    let parent = state(of: process, field: 1).flatMap { Int32(exactly: $0) }
    parents.withLock {
      if $0.count >= 1024 { $0.removeAll() }
      $0[process] = parent.map { ($0, now) }
    }
    return parent
  }

  /// The parent of each process that saved, and when that was read.
  private static let parents = Mutex<[Int32: (parent: Int32, seen: Int64)]>([:])

  /// Nanoseconds for which a parent is not read again: the numbers of processes come round more slowly.
  private static let parentLifetime: Int64 = 1_000_000_000

  /// - Parameter field: Counted from the state on.
  private static func state(of process: Int32, field: Int) -> Int64? {
    guard process > 0, let file = fopen("/proc/\(process)/stat", "re") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 1024)
    guard fgets(&line, CInt(line.count), file) != nil else { return nil }
    let bytes = line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    // The program's name may hold anything; the state follows it, and is the third of the fields.
    guard let end = bytes.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    let fields = bytes[(end + 1)...].split(separator: UInt8(ascii: " "))
    return fields.count > field ? Int64(String(decoding: fields[field], as: UTF8.self)) : nil
  }

  /// The account that acts on something in the tree of `row`'s owner.
  func actor(in row: InodeRow) -> Int64 { deed?.person ?? account ?? row.owner }

  func belongs(to group: UInt32) -> Bool { gid == group || supplementary().contains(group) }

  /// The process (thread group) that asks; 0 for the kernel itself and for the API.
  var process: Int32 { Self.process(of: thread) }

  /// CLOCK_MONOTONIC_COARSE, nanoseconds.
  private static var coarseTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// The process of each thread that asked, and when that was seen (CLOCK_MONOTONIC_COARSE, nanoseconds).
  private static let processes = Mutex<[Int32: (process: Int32, seen: Int64)]>([:])

  /// Nanoseconds for which the number of a thread that ends is certainly not given again.
  private static let certain: Int64 = 20_000_000

  /// The process (thread group) of a thread; the thread itself where it is gone.
  static func process(of thread: Int32) -> Int32 {
    guard thread > 0 else { return 0 }
    let now = coarseTime
    if let known = processes.withLock({ $0[thread] }) {
      if now - known.seen < certain { return known.process }
      // Reading a status costs more than asking whether the thread is still one of the process.
      if access("/proc/\(known.process)/task/\(thread)", F_OK) == 0 {
        processes.withLock { $0[thread] = (known.process, now) }
        return known.process
      }
    }
    let process = readProcess(of: thread)
    processes.withLock {
      if $0.count >= 1024 { $0.removeAll() }
      $0[thread] = process.map { ($0, now) }
    }
    return process ?? thread
  }

  /// The thread group from `/proc/TID/status`; nil once the thread is gone.
  private static func readProcess(of thread: Int32) -> Int32? {
    guard let file = fopen("/proc/\(thread)/status", "re") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, 256, file) != nil {
      let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      if text.hasPrefix("Tgid:") { return Int32(text.dropFirst(5).trimmingCharacters(in: .whitespacesAndNewlines)) }
    }
    return nil
  }
}

/// Permission bits as path_resolution(7) applies them.
package enum Permission {
  static let read: UInt32 = 4
  static let write: UInt32 = 2
  static let execute: UInt32 = 1

  /// - Parameter wanted: `R_OK`, `W_OK`, `X_OK` of access(2).
  /// - Throws: `accessDenied` where `caller` lacks one of the bits `wanted`.
  package static func check(_ mode: UInt32, uid: UInt32, gid: UInt32, _ caller: Caller, _ wanted: UInt32) throws {
    if caller.uid == 0 {
      // CAP_DAC_OVERRIDE: everything but executing a file without any x.
      if wanted & execute == 0 || mode & S_IFMT == S_IFDIR || mode & 0o111 != 0 { return }
      throw SheafError(.accessDenied)
    }
    let shift: UInt32 = caller.uid == uid ? 6 : (group(mode, gid, caller) ? 3 : 0)
    guard (mode >> shift) & wanted == wanted else { throw SheafError(.accessDenied) }
  }

  private static func group(_ mode: UInt32, _ gid: UInt32, _ caller: Caller) -> Bool {
    // Groups cost a look-up, so they are only asked for where they make a difference.
    (mode >> 3) & 7 != mode & 7 && caller.belongs(to: gid)
  }
}
