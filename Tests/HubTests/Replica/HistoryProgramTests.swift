import Foundation
import Glibc
import MountKit
import Testing

/// The history of an account on two machines, one of which connects later.
@Suite(.serialized) struct HistoryProgramTests {
  private struct Version: Decodable, Equatable {
    let number: Int
    let time: String
    let size: Int
    let cause: String
    let label: String?
    let base: Int?
  }

  private struct Deleted: Decodable {
    let id: String
    let path: String
  }

  private func versions(_ path: String, _ machine: ReplicaMachine) throws -> [Version] {
    try JSONDecoder().decode([Version].self, from: Data(machine.succeed("versions", path, "--json").output))
  }

  private func deleted(_ machine: ReplicaMachine) throws -> [String] {
    let output = try machine.succeed("deleted", "--json").output
    return try JSONDecoder().decode([Deleted].self, from: Data(output)).map(\.path).sorted()
  }

  /// - Parameter body: Gets the first machine, which is mounted, and connects and mounts the second one when it asks for
  ///   that.
  private func withMachines(
    _ body: (_ laptop: ReplicaMachine, _ desktop: ReplicaMachine, _ connect: () throws -> Void) throws -> Void
  ) throws {
    let place = try HubPlace()
    _ = try place.serve()
    let (laptop, desktop) = (try ReplicaMachine("laptop", place), try ReplicaMachine("desktop", place))
    defer {
      try? laptop.library.tearDown()
      try? desktop.library.tearDown()
    }
    _ = try laptop.succeed("connect", place.link, "--name", "laptop")
    try laptop.mount()
    try body(laptop, desktop) {
      try laptop.wait()
      let link = try laptop.succeed("device", "add").text.trimmingCharacters(in: .whitespacesAndNewlines)
      _ = try desktop.succeed("connect", link, "--name", "desktop")
      try desktop.mount()
      try desktop.wait()
    }
    for machine in [laptop, desktop] { #expect(try machine.library.check() == []) }
  }

  /// The documents and plain files of a machine, by their paths.
  private func files(_ machine: ReplicaMachine) throws -> [String] {
    let script = "cd '\(machine.library.documents)' && find . -name .deleted -prune -o -type f -print | sort"
    return try Command.shell(script).succeed().text.split(separator: "\n").map { String($0.dropFirst(2)) }
  }

  private func settle(_ machines: [ReplicaMachine]) throws { for machine in machines + machines { try machine.wait() } }

  @Test func whoConnectsLaterHasTheWholeHistory() throws {
    try withMachines { laptop, desktop, connect in
      try laptop.shell("for i in 1 2 3 4 5; do echo text $i > plan.md; done; : > plan.md; echo last > plan.md")
      try laptop.shell("mkdir d && echo one > d/a && echo two > d/a && echo b > gone && ln -s gone link")
      try laptop.wait()
      _ = try laptop.succeed("label", "Documents/plan.md", "second", "--version", "2")
      try laptop.shell("rm -r d && rm gone link")
      try connect()
      let here = try versions("Documents/plan.md", laptop)
      #expect(here.count >= 6)
      #expect(try versions("Documents/plan.md", desktop) == here)
      #expect(here.first { $0.number == 2 }?.label == "second")
      #expect(try desktop.succeed("show", "Documents/plan.md", "--version", "3").text == "text 3")
      let files = try [laptop, desktop].map { machine in
        try Command.shell(
          "cd '\(machine.library.documents)/.versions/plan.md' && cat * && ls -l --time-style=full-iso"
        ).succeed().text
      }
      #expect(files[0] == files[1])
      // What was deleted before is in the trash, with its history, and comes back on both.
      #expect(try deleted(laptop) == deleted(desktop))
      #expect(try deleted(desktop).contains("Documents/d/a"))
      #expect(try versions("Documents/d/a", desktop) == versions("Documents/d/a", laptop))
      _ = try desktop.succeed("recover", "Documents/d")
      // At once, on both.
      _ = try laptop.succeed("recover", "Documents/gone")
      _ = try desktop.succeed("recover", "Documents/gone")
      try settle([laptop, desktop])
      #expect(try laptop.tree() == desktop.tree())
      let texts = try Command.shell("cd '\(laptop.library.documents)' && cat d/a gone").succeed().text
      #expect(texts == "two\nb")
      #expect(try versions("Documents/d/a", desktop) == versions("Documents/d/a", laptop))
    }
  }

  @Test func aLabelThatWasGivenWhileDisconnectedTravels() throws {
    try withMachines { laptop, desktop, connect in
      try laptop.shell("for i in 1 2 3; do echo text $i > plan.md; done")
      try connect()
      _ = try desktop.succeed("label", "Documents/plan.md", "early", "--version", "2")
      try settle([laptop, desktop])
      _ = try laptop.succeed("disconnect")
      _ = try laptop.succeed("label", "Documents/plan.md", "first", "--version", "1")
      try laptop.shell("echo text 4 > plan.md")
      _ = try laptop.succeed("label", "Documents/plan.md", "last")
      // What changed elsewhere meanwhile stays as it is there.
      _ = try desktop.succeed("label", "Documents/plan.md", "early", "--version", "3")
      try desktop.wait()
      _ = try laptop.succeed("connect", desktop.succeed("device", "add").text, "--name", "laptop again")
      try settle([laptop, desktop])
      for machine in [laptop, desktop] {
        let labels = try versions("Documents/plan.md", machine).map { $0.label ?? "-" }
        #expect(labels == ["first", "-", "early", "last"], "\(labels)")
      }
      // What changes nothing on one machine does not undo what the other one did before.
      for machine in [laptop, desktop] { _ = try machine.succeed("sync", "--pause") }
      _ = try desktop.succeed("label", "Documents/plan.md", "first", "--version", "2")
      _ = try laptop.succeed("label", "Documents/plan.md", "first", "--version", "1")
      for machine in [desktop, laptop] {
        _ = try machine.succeed("sync", "--resume")
        try machine.wait()
      }
      try settle([laptop, desktop])
      for machine in [laptop, desktop] {
        let labels = try versions("Documents/plan.md", machine).map { $0.label ?? "-" }
        #expect(labels == ["-", "first", "early", "last"], "\(labels)")
      }
    }
  }

  @Test func twoThatSavedAtOnceHaveBothVersions() throws {
    try withMachines { laptop, desktop, connect in
      try laptop.shell("seq 20 > text.txt")
      try connect()
      for round in 0..<3 {
        _ = try [laptop, desktop].map { try $0.library.unmount() }
        try laptop.mount()
        try laptop.shell("sed -i 's/^2$/2 laptop \(round)/; s/^2 laptop.*/2 laptop \(round)/' text.txt")
        try laptop.library.unmount()
        try desktop.mount()
        try desktop.shell("sed -i 's/^18$/18 desktop/; s/^18 desktop.*/18 desktop \(round)/' text.txt")
        try laptop.mount()
        try settle([laptop, desktop])
        let (left, right) = (try versions("Documents/text.txt", laptop), try versions("Documents/text.txt", desktop))
        #expect(left == right, "round \(round)")
      }
      let text = try Command.shell("cat '\(laptop.library.documents)/text.txt'").succeed().text
      #expect(text.contains("laptop 2") && text.contains("desktop 2"), "\(text)")
    }
  }

  @Test func labelsTravelBothWays() throws {
    try withMachines { laptop, desktop, connect in
      try laptop.shell("for i in 1 2 3; do echo text $i > plan.md; done")
      try connect()
      _ = try desktop.succeed("label", "Documents/plan.md", "draft", "--version", "1")
      try settle([desktop, laptop])
      #expect(try versions("Documents/plan.md", laptop).first?.label == "draft")
      // It moves.
      _ = try laptop.succeed("label", "Documents/plan.md", "draft", "--version", "2")
      _ = try laptop.succeed("label", "Documents/plan.md", "first", "--version", "1")
      try settle([laptop, desktop])
      #expect(try versions("Documents/plan.md", desktop).prefix(2).map(\.label) == ["first", "draft"])
      // One that is given before the hub has the version.
      try laptop.shell("echo new > new.md")
      _ = try laptop.succeed("label", "Documents/new.md", "fresh")
      try settle([laptop, desktop])
      #expect(try versions("Documents/new.md", desktop).last?.label == "fresh")
    }
  }

  @Test func whatIsPurgedIsGoneEverywhere() throws {
    try withMachines { laptop, desktop, connect in
      try laptop.shell("for i in 1 2 3; do echo secret $i > plan.md; done; mkdir d && echo a > d/a && echo b > b")
      try connect()
      #expect(try versions("Documents/plan.md", desktop).map(\.number) == [1, 2, 3])
      _ = try laptop.succeed("purge", "Documents/plan.md", "--version", "2", "--yes")
      _ = try laptop.succeed("purge", "Documents/d", "--yes")
      try laptop.shell("rm b")
      try settle([laptop, desktop])
      let trash = try deleted(desktop)
      #expect(trash == ["Documents/b"])
      _ = try desktop.succeed("purge", "Documents/b", "--yes")
      try settle([desktop, laptop])
      for machine in [laptop, desktop] {
        let (numbers, trash) = (try versions("Documents/plan.md", machine).map(\.number), try deleted(machine))
        #expect(numbers == [1, 3])
        #expect(trash == [])
        #expect(access("\(machine.library.documents)/d", F_OK) != 0)
      }
    }
  }

  /// What the hub had of an item goes with a purge, whatever another machine called it meanwhile. What the hub never had
  /// is a new item there.
  @Test func whatIsPurgedIsGoneThoughAnotherMachineRenamedIt() throws {
    try withMachines { laptop, desktop, connect in
      try laptop.shell(
        "for name in renamed moded tagged kept saved gone; do echo secret > $name; done; mkdir d e && echo a > d/a")
      try laptop.shell("ln -s renamed link; ln -s renamed led; echo b > e/b")
      try connect()
      _ = try desktop.succeed("sync", "--pause")
      try desktop.shell("mv renamed other; chmod 600 moded; setfattr -n user.tag -v 1 tagged; echo mine >>saved")
      try desktop.shell("mv d dir; echo new >dir/new; mv e left; mv link away; ln -sfn saved led; rm gone")
      for name in ["renamed", "moded", "tagged", "saved", "d", "e", "link", "led", "gone"] {
        _ = try laptop.succeed("purge", "Documents/\(name)", "--yes")
      }
      try laptop.wait()
      _ = try desktop.succeed("sync", "--resume")
      try settle([desktop, laptop])
      for machine in [laptop, desktop] {
        let script = "cd '\(machine.library.documents)' && find . -name .deleted -prune -o ! -name . -print | sort"
        let names = try Command.shell(script).succeed().text
        #expect(names == "./dir\n./dir/new\n./kept\n./led\n./left\n./saved")
        #expect(try Command.shell("cat '\(machine.library.documents)/saved'").succeed().text == "secret\nmine")
        #expect(try !machine.succeed("status").text.contains("refused"))
      }
    }
  }

  /// Somebody empties the trash of one machine, and another one has brought something back from there.
  @Test(arguments: [false, true]) func whatIsBroughtBackStaysThoughTheTrashIsEmptied(isSentFirst: Bool) throws {
    try withMachines { laptop, desktop, connect in
      try laptop.shell("echo one > keep; echo two > keep; echo x > gone; mkdir d; echo y > d/in; ln -s keep link")
      try laptop.shell("echo z > far")
      try connect()
      _ = try desktop.succeed("free", "Documents/far")
      try laptop.shell("rm -r keep gone d link far")
      try settle([laptop, desktop])
      _ = try desktop.succeed("sync", "--pause")
      // Of what is not on this machine nothing could stay.
      if !isSentFirst { _ = try desktop.succeed("recover", "Documents/far") }
      for name in ["keep", "d", "link"] { _ = try desktop.succeed("recover", "Documents/\(name)") }
      _ = try desktop.succeed("label", "Documents/keep", "precious")
      try desktop.shell("mkdir folder; mv keep folder/kept")
      if isSentFirst {
        // The purge is refused by what came back before it.
        _ = try laptop.succeed("sync", "--pause")
      }
      for name in ["keep", "gone", "d", "link", "far"] {
        _ = try laptop.succeed("purge", "Documents/\(name)", "--yes")
      }
      if isSentFirst {
        _ = try desktop.succeed("sync", "--resume")
        try desktop.wait()
        _ = try laptop.succeed("sync", "--resume")
      } else {
        try laptop.wait()
        _ = try desktop.succeed("sync", "--resume")
      }
      try settle([desktop, laptop])
      for machine in [laptop, desktop] {
        let script = "cd '\(machine.library.documents)' && find . -name .deleted -prune -o ! -name . -print | sort"
        let names = try Command.shell(script).succeed().text
        #expect(names == "./d\n./d/in\n./folder\n./folder/kept\n./link", "\(names)")
        #expect(try machine.succeed("show", "Documents/folder/kept", "--version", "precious").text == "two")
        #expect(try machine.succeed("show", "Documents/d/in").text == "y")
      }
      let status = try desktop.succeed("status").text
      #expect(!status.contains("refused"), "\(status)")
      if !isSentFirst { #expect(status.contains("recovered here while it was purged elsewhere"), "\(status)") }
    }
  }

  /// A document that was saved on another machine while it was purged is a new one, without the versions that were to be
  /// destroyed; what was saved keeps its label.
  @Test func whatIsPurgedTakesItsVersionsAlongThoughAnotherMachineSavedIt() throws {
    try withMachines { laptop, desktop, connect in
      try laptop.shell("for i in 1 2 3; do echo secret $i >plan; done; echo before >other")
      try connect()
      _ = try desktop.succeed("sync", "--pause")
      try desktop.shell("echo mine >plan; echo more >>plan")
      _ = try desktop.succeed("label", "Documents/plan", "mine")
      try desktop.shell("echo last >>plan")
      _ = try laptop.succeed("purge", "Documents/plan", "--yes")
      try laptop.wait()
      _ = try desktop.succeed("sync", "--resume")
      try settle([desktop, laptop])
      let texts = try [laptop, desktop].map { machine in
        try versions("Documents/plan", machine).map { version in
          let file = "'\(machine.library.documents)/.versions/plan/'*\(version.number)~*"
          let text = try Command.shell("cat \(file)").succeed().text
          return "\(version.number) \(version.label ?? "") \(text)"
        }
      }
      #expect(texts[0] == ["1  mine", "2 mine mine\nmore", "3  mine\nmore\nlast"])
      #expect(texts[1] == texts[0])
      let status = try desktop.succeed("status").text
      #expect(status.contains("Documents/plan: was saved or recovered here while it was purged elsewhere"))
      #expect(!status.contains("refused"))
    }
  }

  /// The hub keeps what it heard of before the purge, and destroys all that was before that.
  @Test func whatWasSavedElsewhereBeforeThePurgeCameLosesItsEarlierVersions() throws {
    try withMachines { laptop, desktop, connect in
      try laptop.shell("mkdir d; for i in 1 2 3; do echo secret $i >plan; echo secret $i >d/in; done; echo x >d/gone")
      try connect()
      _ = try laptop.succeed("sync", "--pause")
      for name in ["plan", "d"] { _ = try laptop.succeed("purge", "Documents/\(name)", "--yes") }
      try desktop.shell("echo mine >plan; echo mine >d/in")
      try desktop.wait()
      _ = try laptop.succeed("sync", "--resume")
      try settle([laptop, desktop])
      for machine in [laptop, desktop] {
        for path in ["plan", "d/in"] {
          #expect(try versions("Documents/\(path)", machine).map(\.number) == [4])
          #expect(try machine.shell("cat \(path)") == "mine")
        }
        #expect(access("\(machine.library.documents)/d/gone", F_OK) != 0)
        #expect(try deleted(machine) == [])
      }
      #expect(try laptop.succeed("status").text.contains("Documents/plan: was changed elsewhere before it was purged"))
    }
  }

  /// Its share goes with it, and nothing waits for the item.
  @Test func whatIsSharedAndPurgedIsNotWaitedFor() throws {
    try withMachines { laptop, desktop, connect in
      try laptop.shell("echo x >shared; mkdir team; echo y >team/y")
      try connect()
      for name in ["shared", "team"] { _ = try laptop.succeed("share", "Documents/\(name)") }
      try settle([laptop, desktop])
      #expect(try desktop.shell("getfattr --only-values -n user.sheaf.share.url team").hasPrefix("https://"))
      for name in ["shared", "team"] { _ = try laptop.succeed("purge", "Documents/\(name)", "--yes") }
      try settle([laptop, desktop])
      #expect(try desktop.shell("ls") == "")
    }
  }

  /// A folder with rules of its own goes on one machine: what they ignore on the other one stays there, though the rules
  /// go first.
  @Test(arguments: [true, false]) func whatItsOwnRulesIgnoreStays(_ isInSteps: Bool) throws {
    try withMachines { laptop, desktop, connect in
      try laptop.shell("mkdir -p own/build; printf '*.log\\nbuild/\\n' >own/.sheafignore; echo t >own/t.txt")
      try connect()
      try laptop.shell("echo precious >own/a.log; echo o >own/build/x.o")
      try settle([laptop, desktop])
      if isInSteps {
        try desktop.shell("rm own/.sheafignore")
        try settle([laptop, desktop])
      }
      try desktop.shell("rm -r own")
      try settle([laptop, desktop])
      try eventually("the rest is gone", within: .seconds(60)) {
        try files(laptop).sorted() == ["own/a.log", "own/build/x.o"]
      }
      #expect(try laptop.shell("cat own/a.log own/build/x.o") == "precious\no")
      try settle([laptop, desktop])
      #expect(try files(desktop) == [])
    }
  }

  /// A document in an ignored folder is on all machines, and what is ignored stays where it is, on each under its name.
  @Test func documentsInIgnoredFoldersTravel() throws {
    try withMachines { laptop, desktop, connect in
      try laptop.shell("mkdir -p node_modules/a; echo lib >node_modules/a/lib; echo one >doc; echo two >other")
      try connect()
      try desktop.shell("mkdir -p node_modules/a/b; echo own >node_modules/a/own; echo own >node_modules/own")
      try settle([laptop, desktop])
      try laptop.shell("mv doc node_modules/a/doc")
      try settle([laptop, desktop])
      try desktop.shell("mv other node_modules/a/b/other")
      try settle([desktop, laptop])
      let common = ["node_modules/a/b/other", "node_modules/a/doc"]
      #expect(try files(laptop) == common + ["node_modules/a/lib"])
      #expect(try files(desktop) == common + ["node_modules/a/own", "node_modules/own"])
      for machine in [laptop, desktop] {
        #expect(try !machine.succeed("status").text.contains("to be sent"))
        #expect(try versions("Documents/node_modules/a/doc", machine).count == 1)
        let states = "getfattr --only-values -n user.sheaf.sync . node_modules node_modules/a/doc"
        #expect(try machine.shell(states) == "syncedsyncedsynced")
        // What the hub never hears of waits for nothing.
        let plain = machine.name == "laptop" ? "lib" : "own"
        #expect(try machine.shell("getfattr -d -m sheaf.sync node_modules/a/\(plain)") == "")
      }
      // It is saved, and goes, as any other.
      try desktop.shell("echo more >node_modules/a/doc")
      try settle([desktop, laptop])
      #expect(try laptop.shell("cat node_modules/a/doc") == "more")
      try laptop.shell("rm node_modules/a/b/other")
      try settle([laptop, desktop])
      #expect(try !files(desktop).contains("node_modules/a/b/other"))
      #expect(try deleted(desktop).contains("Documents/node_modules/a/b/other"))
    }
  }

  /// What was never sent keeps its folder, which is a new one at the hub, and nothing else waits for that.
  @Test func whatWasNotSentKeepsAPurgedFolder() throws {
    try withMachines { laptop, desktop, connect in
      try laptop.shell("mkdir -p saved new moved deep/er ignored whole; echo '*.o' >.sheafignore; echo m >m")
      try laptop.shell("for d in saved new moved deep/er ignored whole; do echo old >$d/old; done")
      try connect()
      _ = try desktop.succeed("sync", "--pause")
      try desktop.shell("echo mine >saved/old; echo mine >new/new; mv m moved/m; echo mine >deep/er/new")
      try desktop.shell("echo o >ignored/x.o")
      for name in ["saved", "new", "moved", "deep", "ignored", "whole"] {
        _ = try laptop.succeed("purge", "Documents/\(name)", "--yes")
      }
      try laptop.wait()
      _ = try desktop.succeed("sync", "--resume")
      try settle([desktop, laptop])
      try desktop.shell("echo more >ignored/more; echo elsewhere >elsewhere")
      try settle([desktop, laptop])
      let common = ["deep/er/new", "elsewhere", "ignored/more", "moved/m", "new/new", "saved/old"]
      #expect(try files(laptop) == [".sheafignore"] + common)
      #expect(try files(desktop).sorted() == ([".sheafignore", "ignored/x.o"] + common).sorted())
      #expect(try Command.shell("cat '\(laptop.library.documents)/saved/old'").succeed().text == "mine")
      #expect(try !desktop.succeed("status").text.contains("refused"))
    }
  }
}
