import SheafLibrary
import SheafModel
import Testing

@testable import SheafCommand

/// The commands in advice mean the library and the account that the error is from.
@Suite struct AdvisedCommandTests {
  @Test(arguments: [
    ("stop it with: sheaf unshare Documents/Team", "unshare"),
    ("leave it with: sheaf leave 'Shared/bob@example.com/a; b'", nil),
    ("invite them with: sheaf participant add Documents/x bob@example.com", "participant"),
    ("unmount it first; where it is mounted, says: sheaf status --library l", nil),
    ("stop sharing one first with: sheaf unshare; or share the folder around several", nil),
    ("`sheaf participants` shows who does", nil), ("ask again later", nil), ("make one with: sheaf account", "account"),
    ("see: sheaf", nil),
  ])
  func commandsAtTheEndAreFound(_ advice: String, _ command: String?) {
    #expect(AdvisedCommand.command(endingIn: advice)?.dropFirst().first.map(String.init) == command)
  }

  @Test func theyGetWhatTheyLack() throws {
    let location = LibraryLocation(path: "/nowhere/a library.sqlite")
    let account = try AccountHandle("bob@example.com")
    func advice(_ text: String?, as account: AccountHandle?) -> String? {
      let error = SheafError(.notPermitted, subject: "x", reason: "is y", advice: text)
      return (AdvisedCommand.completed(error, location, as: account) as? SheafError)?.advice
    }
    #expect(
      advice("stop it with: sheaf unshare Documents/a", as: account)
        == "stop it with: sheaf unshare Documents/a --as bob@example.com --library '/nowhere/a library.sqlite'")
    #expect(
      advice("stop it with: sheaf unshare Documents/a --as c@d.e", as: account)
        == "stop it with: sheaf unshare Documents/a --as c@d.e --library '/nowhere/a library.sqlite'")
    #expect(advice("name that, or move it out", as: account) == "name that, or move it out")
    #expect(advice(nil, as: account) == nil)
  }
}
