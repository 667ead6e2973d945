import ConformanceKit
import Foundation
import Glibc
import MountKit
import SheafStore
import Testing

/// A tree is given to another account, and at each step the process dies, the step fails, or the disk is full: the tree
/// is whole on one side.
@Suite(.serialized) struct TransferFaultTests {
  private static let count = 150

  /// The first passage is that of the change that gives the tree away; its rows follow at the next ones.
  static let faults: [String] = FaultPoint.allCases.map(\.rawValue).filter { $0.hasPrefix("transfer.") }
    .flatMap { point in
      [1, 2, 3].flatMap { count in
        // After the commit a step cannot fail any more.
        (point.hasSuffix(".committed") ? ["kill"] : ["kill", "fail", "full"]).map { "\(point):\($0):\(count)" }
      }
    }

  @Test func thereAreSuchSteps() { #expect(Self.faults.count == 21) }

  @Test(arguments: faults)
  func theTreeIsWholeOnOneSide(_ fault: String) throws {
    try withMount(environment: ["SHEAF_FAULT": fault]) { library in
      let (bob, file) = ("bob@example.com", library.library)
      try library.sheafSucceeds("account", "add", bob, "--library", file)
      try library.shell(
        """
        mkdir -p team/deep; cd team
        for n in $(seq \(Self.count)); do echo "$n" >"deep/f$n"; done
        echo gone >gone; rm gone; ln deep/f1 hard
        """)
      try library.sheafSucceeds("transfer", "\(library.documents)/team", bob)
      let accepted = try library.sheaf(
        "accept", "id:\(try id(of: "\(library.documents)/team"))", "--as", bob, "--library", file)
      let isKilled = fault.contains(":kill:")
      if isKilled { try eventually("the fault", within: .seconds(60)) { library.server == nil } }
      // What failed at the first step left all as it was, and what failed later is done by and by.
      if !isKilled { #expect((accepted.status == 0) == !fault.hasSuffix(":1"), "\(accepted)") }
      if isKilled {
        library.breakMount()
        try library.mount()
      }
      let isAlices = access("\(library.documents)/team", F_OK) == 0
      if !isKilled { #expect(isAlices == fault.hasSuffix(":1")) }
      if isKilled, !fault.hasPrefix("transfer.committed") { #expect(isAlices == fault.hasSuffix(":1")) }
      if fault.hasPrefix("transfer.committed") { #expect(!isAlices) }
      try library.unmount()
      #expect(try library.check() == [])
      let (owner, other) = isAlices ? ("alice@example.com", bob) : (bob, "alice@example.com")
      for path in ["team/hard", "team/deep/f\(Self.count)"] {
        let shown = try library.sheaf("show", "Documents/\(path)", "--version", "1", "--as", owner, "--library", file)
        #expect(shown.status == 0, "\(shown)")
      }
      let gone = try library.sheafSucceeds("deleted", "--as", owner, "--library", file)
      #expect(gone.text.contains("Documents/team/gone"), "\(gone)")
      let none = try library.sheaf("versions", "Documents/team/hard", "--as", other, "--library", file)
      #expect(none.status == 1, "\(none)")
      // It goes on from there.
      if isAlices {
        let id = try library.sheafSucceeds("transfer", "--json", "--as", bob, "--library", file)
        let offered = try #require(id.text.firstMatch(of: /"id" ?: ?"([0-9a-f-]+)"/)?.1)
        try library.sheafSucceeds("accept", "id:\(offered)", "--as", bob, "--library", file)
        #expect(try library.check() == [])
      }
      try library.mount()
      #expect(access("\(library.documents)/team", F_OK) != 0)
    }
  }

  private func id(of path: String) throws -> String {
    try Command(["getfattr", "--only-values", "-n", "user.sheaf.id", "--absolute-names", path]).succeed().text
  }
}
