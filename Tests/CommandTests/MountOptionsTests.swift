import SheafModel
import Testing

@testable import SheafCommand

@Suite struct MountOptionsTests {
  @Test func readsListsAsMountPassesThem() throws {
    let options = try MountOptions(parsing: [
      "rw,nosuid,noexec,_netdev,x-systemd.automount,user=ann", "ro,allow_other,library=/a/b.sqlite,as=ann@x,for=ann",
    ])
    var expected = MountOptions()
    expected.readOnly = true
    expected.allowOther = true
    expected.library = "/a/b.sqlite"
    expected.account = "ann@x"
    expected.forUser = "ann"
    expected.forwarded = ["nosuid", "noexec"]
    #expect(options == expected)
  }

  @Test func takesNothing() throws {
    #expect(try MountOptions(parsing: []) == MountOptions())
    #expect(try MountOptions(parsing: ["", "defaults"]) == MountOptions())
    #expect(try MountOptions(parsing: ["ro,rw"]) == MountOptions())
    #expect(try MountOptions(parsing: ["rw", "ro"]).readOnly)
  }

  @Test func takesWhatLinesOfFstabHave() throws {
    let parsed = { (list: String) in try MountOptions(parsing: [list]).forwarded }
    #expect(try parsed("strictatime,lazytime,nolazytime,nostrictatime,diratime,silent,loud") == [])
    #expect(try parsed("noatime,nodiratime,default_permissions") == ["noatime", "nodiratime", "default_permissions"])
    for later in ["atime", "relatime", "strictatime"] { #expect(try parsed("noatime,dev,\(later)") == ["dev"]) }
    #expect(try parsed("nodiratime,diratime") == [])
    #expect(try parsed("xattrs=named,ro") == ["xattrs=named"] && parsed("xattrs=named,xattrs=all") == [])
    #expect(try parsed("atime,noatime") == ["noatime"])
  }

  @Test(arguments: ["max_read=5", "library=", "nosuch", "as", "xattrs=some"])
  func namesWhatItDoesNotKnow(option: String) {
    #expect {
      try MountOptions(parsing: ["ro," + option])
    } throws: { error in
      (error as? SheafError)?.subject == "-o \(option)"
    }
  }

  @Test func readsFuseConfiguration() {
    #expect(FuseAvailability.allowsOthers(Array("# x\n  user_allow_other \n".utf8)))
    #expect(!FuseAvailability.allowsOthers(Array("#user_allow_other\nmount_max = 5\n".utf8)))
  }
}

@Suite struct DefaultAccountTests {
  @Test(arguments: [
    ("ann", "box", "ann@box"), ("Ann", "Box.Example.COM", "ann@box.example.com"),
    ("a b\\c", "my_host", "a-b-c@my-host"),
    ("", "", "user@localhost"), ("änn", "x", "-nn@x"),
  ])
  func makesAHandle(user: String, host: String, handle: String) throws {
    #expect(try DefaultAccount.handle(user: user, host: host).description == handle)
  }

  @Test func bearsLongNames() throws {
    let long = String(repeating: "x", count: 300)
    #expect(try DefaultAccount.handle(user: long, host: long).description.utf8.count <= AccountHandle.maximumLength)
  }

  @Test func givesAUserTheirOwnAccountAndNoOther() throws {
    func own(_ accounts: String...) throws -> String? {
      let handles = try accounts.map { try AccountHandle($0) }
      return DefaultAccount.own(try AccountHandle("ann@new"), among: handles)?.description
    }
    #expect(try own() == nil)
    #expect(try own("bob@x", "ann@old", "ann@new") == "ann@new")
    // The machine was renamed.
    #expect(try own("bob@x", "ann@old") == "ann@old")
    #expect(try own("bob@old") == nil)
    #expect(try own("ann@old", "ann@older") == nil)
  }
}
