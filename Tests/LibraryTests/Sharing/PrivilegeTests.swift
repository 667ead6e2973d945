import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// What gives a program other rights than those of who runs it, and folders that guard what is in them.
struct PrivilegeTests {
  private static let capability = Array("security.capability".utf8)

  /// How somebody changes a program.
  enum Change: CaseIterable { case written, opened, truncated, allocated, copied, restored, replaced, exchanged }

  /// Neither set-id bits nor capabilities outlive a change by a participant.
  @Test(arguments: Change.allCases) func whatSomebodyElseChangesRunsWithNoOtherRights(_ change: Change) throws {
    try People.story { people in
      let (program, theirs) = ("Documents/tools/program", "Shared/alice@example.com/tools/program")
      try people.as(.alice) { try $0.mkdir("Documents/tools") }
      try people.share("Documents/tools", with: [(.bob, .readWrite)])
      try people.as(.alice) { (alice) throws in
        for text in ["one", "two"] {
          try alice.save(program, text)
          people.clock.advance(60)
        }
        _ = try alice.change(program, .init(mode: 0o6755))
        try alice.library.setXattr(alice.inode(program), Self.capability, [1], .set, alice.caller)
        #expect(try alice.status(program).mode & 0o7777 == 0o6755)
      }
      try people.as(.bob, process: getpid()) { try self.change(theirs, change, as: $0) }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.status(program).mode & 0o7777 == 0o755)
        expect(.noAttribute) { _ = try alice.library.xattr(alice.inode(program), Self.capability, alice.caller) }
      }
    }
  }

  /// What another account owns is shown as the mounting user's, so that its set-id bits would give their rights to
  /// anyone.
  @Test func nobodySeesTheSetIDBitsOrDevicesOfOthers() throws {
    try People.story { people in
      let (tools, theirs) = ("Documents/tools", "Shared/alice@example.com/tools")
      try people.as(.alice) { (alice) throws in
        try alice.mkdir(tools)
        try alice.save("\(tools)/program", "program")
        _ = try alice.change("\(tools)/program", .init(mode: 0o6755))
        _ = try alice.change(tools, .init(mode: 0o2775))
        _ = try alice.library.make(
          .special(type: S_IFCHR, rdev: 5), alice.inode(tools), Array("device".utf8), mode: 0o666, alice.caller)
      }
      try people.share(tools, with: [(.bob, .readWrite)])
      try people.as(.bob) { (bob) throws in
        #expect(try bob.status(theirs).mode & 0o7777 == 0o775)
        #expect(try bob.status("\(theirs)/program").mode & 0o7777 == 0o755)
        #expect(try bob.status("\(theirs)/device").rdev == 0)
        let listed = try bob.library.list(bob.inode(theirs), after: 0, limit: 10, bob.caller)
        #expect(listed.allSatisfy { ($0.attributes?.mode ?? 0o7777) & 0o6000 == 0 && $0.attributes?.rdev == 0 })
        let name = Array("program".utf8)
        #expect(try bob.library.lookup(bob.inode(theirs), name, bob.caller).mode & 0o7777 == 0o755)
        // What bob does not see he does not take from a folder, and lends no program another mode with.
        #expect(try bob.change(theirs, .init(mode: 0o777)).mode & 0o7777 == 0o777)
        #expect(try bob.change("\(theirs)/program", .init(mode: 0o4777)).mode & 0o7777 == 0o777)
      }
      try people.as(.alice) { (alice) throws in
        #expect(try alice.status(tools).mode & 0o7777 == 0o2777)
        #expect(try alice.status("\(tools)/program").mode & 0o7777 == 0o777)
        #expect(try alice.status("\(tools)/device").rdev == 5)
      }
    }
  }

  private func change(_ program: String, _ change: Change, as person: Person) throws {
    switch change {
    case .truncated: _ = try person.change(program, .init(size: 1))
    case .restored: #expect(try person.library.restore(person.path(program), version: 1) != nil)
    case .replaced:
      try person.save("\(program).tmp", "new")
      try person.rename("\(program).tmp", program)
    case .exchanged:
      try person.save("\(program).tmp", "new")
      try person.exchange("\(program).tmp", program)
    case .written, .opened, .allocated, .copied:
      let handle = try person.open(program, change == .opened ? O_RDWR | O_TRUNC : O_RDWR)
      switch change {
      case .written: try person.write(handle, "new")
      case .allocated: try person.library.allocate(handle, 0..<100, .preallocate(keepsSize: true))
      case .copied: #expect(try person.library.copy(from: handle, at: 0, to: handle, at: 10, count: 3) == 3)
      default: break
      }
      try person.close(handle)
    }
  }

  /// chown(2) with nothing to change asks for no more than to clear set-id bits, which is for the owner, or for who writes.
  @Test func whoMayNotWriteClearsNoSetIDBits() throws {
    let fixture = try LibraryFixture()
    try fixture.save("su", "program")
    let (ino, account) = (try fixture.ino("su"), try fixture.library.number(of: fixture.account))
    let stranger = Caller(uid: 5, gid: 5, thread: 0, door: 0, account: account, user: nil) { [] }
    func mode() throws -> UInt32 { try fixture.library.attributes(ino, .library).mode & 0o7777 }
    _ = try fixture.library.setAttributes(ino, .init(mode: 0o6755), handle: nil, .library)
    expect(.notPermitted) { _ = try fixture.library.setAttributes(ino, .init(), handle: nil, stranger) }
    #expect(try mode() == 0o6755)
    _ = try fixture.library.setAttributes(ino, .init(mode: 0o6757), handle: nil, .library)
    _ = try fixture.library.setAttributes(ino, .init(), handle: nil, stranger)
    #expect(try mode() == 0o757)
    _ = try fixture.library.setAttributes(ino, .init(), handle: nil, stranger)
    try fixture.finish()
  }

  /// Whoever a mount was given to removes from a sticky folder what is shown as theirs; nobody else does.
  @Test func aStickyFolderGoesByTheOwnersThatAreShown() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("drop")
    _ = try fixture.library.setAttributes(fixture.ino("drop"), .init(mode: 0o1777), handle: nil, .library)
    for name in ["a", "b"] { try fixture.save("drop/\(name)", name) }
    let (drop, account) = (try fixture.ino("drop"), try fixture.library.number(of: fixture.account))
    func caller(_ uid: UInt32, _ user: Caller.User?) -> Caller {
      Caller(uid: uid, gid: uid, thread: 0, door: 0, account: account, user: user) { [] }
    }
    let given = Caller.User(uid: 1000, gid: 1000, ownsAll: true)
    for stranger in [caller(1001, given), caller(1000, nil), caller(1000, .init(uid: 1000, gid: 1000))] {
      expect(.notPermitted) { try fixture.library.unlink(drop, Array("a".utf8), stranger) }
    }
    try fixture.library.unlink(drop, Array("a".utf8), caller(1000, given))
    try fixture.library.rename(drop, Array("b".utf8), to: drop, Array("c".utf8), .replace, caller(1000, given))
    #expect(try fixture.names("drop") == ["c"])
    try fixture.finish()
  }

  /// Files that root made in the folder of somebody to whom it gives a mount are shown as theirs. A program that they make
  /// of one runs as them, and so do those that were made in a folder of another group.
  @Test func whoeverAMountIsGivenToMakesProgramsOfTheirsAlone() throws {
    let fixture = try LibraryFixture()
    let account = try fixture.library.number(of: fixture.account)
    let given = Caller(
      uid: 1000, gid: 1000, thread: 0, door: 0, account: account, user: .init(uid: 1000, gid: 1000, ownsAll: true)
    ) { [] }
    func row(_ name: String) throws -> InodeRow {
      let ino = try fixture.ino(name)
      return try #require(try fixture.library.store.read { try $0.inode(ino) })
    }
    for (index, mode) in [UInt32(0o4755), 0o2755, 0o6755, 0o4644].enumerated() {
      try fixture.save("f\(index)", "root's")
      let ino = try fixture.ino("f\(index)")
      #expect(try row("f\(index)").uid == 0)
      _ = try fixture.library.setAttributes(ino, .init(mode: mode), handle: nil, given)
      let made = try row("f\(index)")
      #expect(made.mode & 0o7777 == mode && made.uid == 1000 && made.gid == 1000)
    }
    // Without such bits a file stays whose it was.
    try fixture.save("plain", "root's")
    _ = try fixture.library.setAttributes(fixture.ino("plain"), .init(mode: 0o600), handle: nil, given)
    #expect(try row("plain").uid == 0)
    try fixture.mkdir("group")
    _ = try fixture.library.setAttributes(fixture.ino("group"), .init(mode: 0o2777), handle: nil, .library)
    let made = try fixture.library.create(
      fixture.ino("group"), Array("tool".utf8), mode: 0o2755, flags: O_RDWR, given)
    try fixture.close(made.handle)
    let tool = try row("group/tool")
    #expect(tool.uid == 1000 && tool.gid == 1000)
    try fixture.finish()
  }

  /// Nobody runs as the new owner of a tree what the former one chose, whoever both are to Linux, and no user of the
  /// former owner's has files in it.
  @Test(arguments: [(0, 0), (0, 1001), (1000, 0), (1000, 1001)] as [(UInt32, UInt32)])
  func noSetIDBitsAreTransferred(_ former: UInt32, _ new: UInt32) throws {
    var alice = InodeRow(
      ino: 1, item: nil, owner: 1, parent: 0, name: [], mode: UInt32(S_IFDIR) | 0o700, nlink: 2, uid: former,
      gid: former, time: Timestamp(nanoseconds: 0))
    var bob = alice
    (bob.uid, bob.gid) = (new, new)
    let change = FileOwnerChange(from: alice, to: bob)
    for uid in [former, 0, 1002] as [UInt32] {
      (alice.uid, alice.gid, alice.mode) = (uid, uid, UInt32(S_IFREG) | 0o6755)
      change.apply(to: &alice)
      #expect(alice.uid == new && alice.gid == new && alice.mode & 0o7777 == 0o755)
    }
    alice.mode = UInt32(S_IFDIR) | 0o2755
    change.apply(to: &alice)
    #expect(alice.mode & 0o7777 == 0o2755)
  }

  /// No contents of somebody to whom a mount was given get the set-id bits of root's file: by a command, by a mapping,
  /// for which the file is opened to write, or as what takes its place.
  @Test func noContentsGetTheSetIDBitsOfRoots() throws {
    let fixture = try LibraryFixture()
    let account = try fixture.library.number(of: fixture.account)
    let given = Caller(
      uid: 1000, gid: 1000, thread: 0, door: 0, account: account, user: .init(uid: 1000, gid: 1000, ownsAll: true)
    ) { [] }
    func mode(_ name: String) throws -> UInt32 { try fixture.library.attributes(fixture.ino(name), .library).mode }
    func program(_ name: String, _ mode: UInt32) throws {
      try fixture.save(name, "theirs")
      fixture.clock.advance(60)
      try fixture.save(name, "root's")
      fixture.clock.advance(60)
      _ = try fixture.library.setAttributes(fixture.ino(name), .init(mode: mode), handle: nil, .library)
    }
    for (index, bits) in [UInt32(0o4755), 0o2755, 0o6755].enumerated() {
      let name = "p\(index)"
      try program(name, bits)
      try fixture.close(try fixture.library.open(fixture.ino(name), flags: O_RDONLY, given))
      #expect(try mode(name) & 0o7777 == bits)
      _ = try fixture.library.restore(fixture.path(name), version: 1)
      #expect(try mode(name) & 0o6000 == 0 && fixture.text(name) == "theirs")
      _ = try fixture.library.setAttributes(fixture.ino(name), .init(mode: bits), handle: nil, .library)
      try fixture.close(try fixture.library.open(fixture.ino(name), flags: O_RDWR, given))
      #expect(try mode(name) & 0o6000 == 0)
      // A new file of root's that takes the place of what the user made a program.
      _ = try fixture.library.setAttributes(fixture.ino(name), .init(mode: bits), handle: nil, given)
      try fixture.save("\(name).new", "root's again")
      try fixture.rename("\(name).new", name)
      #expect(try mode(name) & 0o6000 == 0)
    }
    try fixture.finish()
  }
}
