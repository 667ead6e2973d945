import ConformanceKit
import Foundation
import Glibc
import MountKit
import Testing

/// Alice and bob at machines of their own, each with a mounted library that is connected to one hub over TLS.
@Suite(.serialized) struct SharedReplicaTests {
  static let bob = "bob@hub.example"

  struct People {
    let place: HubPlace
    let alice: ReplicaMachine
    let bob: ReplicaMachine

    /// A path in bob's mount of what alice shares.
    func shared(_ path: String) -> String { "\(bob.library.mountpoint)/Shared/\(HubPlace.handle)/\(path)" }

    /// Waits until each machine has what the other one did.
    func settle() throws { for machine in [alice, bob, alice, bob] { try machine.wait() } }

    func share(_ path: String, can: String) throws {
      try alice.wait()
      _ = try alice.succeed("share", "Documents/\(path)", "--with", SharedReplicaTests.bob, "--can", can)
    }

    func url(_ path: String) throws -> String {
      try Command.shell(
        "getfattr --only-values -n user.sheaf.share.url '\(alice.library.documents)/\(path)'"
      ).succeed().text
    }

    /// Shares something with bob, who accepts.
    func join(_ path: String, can: String) throws {
      try share(path, can: can)
      _ = try bob.succeed("accept", url(path))
      try settle()
    }

    func text(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }
  }

  func withPeople(_ body: (People) throws -> Void) throws {
    let place = try HubPlace()
    _ = try place.serve()
    let link = try place.hub.succeed("account", "add", Self.bob)
    let (alice, bob) = (try ReplicaMachine("alice", place), try ReplicaMachine("bob", place, handle: Self.bob))
    defer {
      try? alice.library.tearDown()
      try? bob.library.tearDown()
    }
    _ = try alice.succeed("connect", place.link, "--name", "laptop")
    try alice.mount()
    _ = try bob.succeed("connect", link, "--name", "desktop")
    try bob.mount()
    try body(People(place: place, alice: alice, bob: bob))
    for machine in [alice, bob] { #expect(try machine.library.check() == []) }
  }

  /// The hub hears of everything that alice did on a train in one go. Her private texts are still from before.
  @Test(arguments: [true, false]) func whatAliceDidOnATrainBeforeItEnteredBobNeverSees(isPaused: Bool) throws {
    try withPeople { people in
      try people.alice.shell("mkdir team old && echo p > team/p && echo SECRET0 > old/known && echo x > old/gone")
      try people.join("team", can: "edit")
      if isPaused { try people.alice.succeed("sync", "--pause") }
      // Saves of other programs, so that each is kept.
      try people.alice.shell(
        """
        sh -c 'echo SECRET1 > d; mkdir priv; echo SECRET2 > priv/f; ln priv/f priv/f2; echo SECRET3 > old/known'
        sh -c 'echo open > d; echo open > priv/f; echo open > old/known; rm old/gone'
        mv team/p p; sh -c 'echo SECRET4 > p'; sh -c 'echo public > p'
        """)
      for path in ["d", "old/known", "p"] {
        try people.alice.succeed("comment", "Documents/\(path)", "SECRET5")
      }
      try people.alice.shell("mv d priv p old team/")
      try people.alice.succeed("comment", "Documents/team/d", "now it is here")
      if isPaused { try people.alice.succeed("sync", "--resume") }
      try people.settle()
      for (path, text) in [
        ("d", "open"), ("priv/f", "open"), ("priv/f2", "open"), ("p", "public"), ("old/known", "open"),
      ] {
        #expect(people.text(people.shared("team/\(path)")) == text + "\n", "\(path)")
      }
      let seen = try Command.shell(
        """
        cd '\(people.shared("team"))' && grep -ra . . .versions/*/ priv/.versions/*/ old/.versions/*/; ls .deleted old/.deleted
        """
      ).run().text
      #expect(!seen.contains("SECRET") && !seen.contains("gone") && seen.contains("public"), "\(seen)")
      let told = try people.bob.succeed("activity", "--json").text
      #expect(!told.contains("gone") && !told.contains("known.") && !told.contains("SECRET"), "\(told)")
      #expect(told.contains("priv") && told.contains("now it is here"), "\(told)")
      let notices = try people.bob.succeed("notices", "--json").text
      #expect(!notices.contains("SECRET"), "\(notices)")
      // Alice has all of it.
      for (path, text) in [("d", "SECRET1"), ("priv/f", "SECRET2"), ("old/known", "SECRET0"), ("p", "SECRET4")] {
        let folder = path.split(separator: "/").dropLast().map { $0 + "/" }.joined()
        let name = path.split(separator: "/").last ?? ""
        let versions = try people.alice.shell("cat team/\(folder).versions/\(name)/*")
        #expect(versions.contains(text), "\(path): \(versions)")
      }
    }
  }

  /// It was private on this machine until that.
  @Test func whatAliceSavedBeforeHerOtherMachineMovedItBobNeverSees() throws {
    try withPeople { people in
      try people.alice.shell("mkdir team pw && echo x > pw/a && echo y > doc")
      try people.join("team", can: "edit")
      let other = try ReplicaMachine("other", people.place)
      defer { try? other.library.tearDown() }
      _ = try other.succeed("connect", people.alice.succeed("device", "add").text, "--name", "other")
      try other.mount()
      try other.wait()
      try people.alice.succeed("sync", "--pause")
      for text in ["SECRET", "open"] {
        try people.alice.shell("for f in pw/a pw/new doc; do sh -c \"echo \(text) > $f\"; done")
      }
      try other.shell("mv pw doc team/")
      try other.wait()
      try people.alice.succeed("sync", "--resume")
      try people.settle()
      let seen = try Command.shell(
        "cd '\(people.shared("team"))' && cat .versions/*/* pw/.versions/*/*; cat doc pw/*"
      ).run().text
      #expect(!seen.contains("SECRET") && seen.contains("open\nopen\nopen"), "\(seen)")
      try other.wait()
      #expect(try other.shell("cat team/pw/.versions/new/*") == "SECRET\nopen")
      #expect(try other.library.check() == [])
    }
  }

  /// Neither do people of the share that it left, nor those of the one that it is in now.
  @Test func whatAliceDidBetweenTwoSharesNobodySees() throws {
    try withPeople { people in
      try people.alice.shell("mkdir -p one/f one/g two && echo x > one/f/x && echo y > one/g/y && echo z > one/z")
      for share in ["one", "two"] { try people.join(share, can: "edit") }
      try people.alice.succeed("sync", "--pause")
      try people.alice.shell("mv one/f one/g one/z .")
      for text in ["SECRET", "open"] {
        try people.alice.shell("sh -c 'echo \(text) > f/x'; sh -c 'echo \(text) > g/y'; sh -c 'echo \(text) > z'")
      }
      // Another process moves it, and sends all of it.
      try people.alice.library.killServer()
      try people.alice.mount()
      try people.alice.shell("mv f z two/")
      try people.alice.succeed("sync", "--resume")
      try people.settle()
      #expect(people.text(people.shared("two/f/x")) == "open\n" && people.text(people.shared("two/z")) == "open\n")
      let seen = try Command.shell(
        "cd '\(people.shared("two"))' && cat .versions/z/* f/.versions/x/*; ls -R ../one; cat ../one/.deleted/*/* || true"
      ).run().text
      #expect(!seen.contains("SECRET") && seen.contains("open"), "\(seen)")
      let told = try people.bob.succeed("activity").text
      #expect(!told.contains("edited"), "\(told)")
      #expect(try people.alice.shell("cat two/.versions/z/* g/.versions/y/*").contains("SECRET"))
    }
  }

  /// A share begins once the hub has what is in it.
  @Test(arguments: ["plans", "plans/x"]) func aShareBeginsWithWhatIsCurrent(_ item: String) throws {
    try withPeople { people in
      try people.alice.shell("mkdir plans && echo x > plans/x")
      try people.alice.wait()
      try people.alice.succeed("sync", "--pause")
      try people.alice.shell("sh -c 'echo SECRET > plans/x'; sh -c 'echo open > plans/x'")
      let refused = try people.alice.sheaf("share", "Documents/\(item)", "--with", Self.bob, "--can", "view")
      #expect(refused.status != 0 && refused.errorText.contains("sync --resume"), "\(refused)")
      try people.alice.succeed("sync", "--resume")
      _ = try people.alice.succeed("share", "Documents/\(item)", "--with", Self.bob, "--can", "view")
      _ = try people.bob.succeed("accept", people.url(item))
      try people.settle()
      let path = "Shared/\(HubPlace.handle)/\(item == "plans" ? "plans/x" : "x")"
      let versions = try people.bob.succeed("versions", path, "--json").text
      #expect(versions.components(separatedBy: "\"number\"").count == 2, "\(versions)")
      #expect(try people.bob.succeed("show", path).text == "open")
    }
  }

  /// Who leaves by `rm` and takes the link again, before the hub has heard of the leaving, is not told that they joined.
  @Test func whoHasJustLeftIsNotToldThatTheyJoined() throws {
    try withPeople { people in
      try people.alice.shell("echo x > one.txt")
      try people.join("one.txt", can: "edit")
      try Command.shell("rm '\(people.shared("one.txt"))'").succeed()
      let again = try people.bob.sheaf("accept", try people.url("one.txt"))
      #expect(again.status == 1 && again.errorText.contains("you have just left what it is for"), "\(again)")
      try eventually("the hub has heard of it", within: .seconds(60)) {
        try !people.alice.succeed("participants", "Documents/one.txt").text.contains(Self.bob)
      }
      let refused = try people.bob.sheaf("accept", try people.url("one.txt"))
      #expect(refused.status == 1, "\(refused)")
    }
  }

  /// Who changes something for a part of what is shared would change it for the whole.
  @Test func nothingIsChangedForAPartOfAShare() throws {
    try withPeople { people in
      try people.alice.shell("mkdir team && echo x > team/a.md")
      try people.join("team", can: "edit")
      for words in [
        ["participant", "remove", "Documents/team/a.md", Self.bob],
        ["participant", "set", "Documents/team/a.md", Self.bob, "--can", "view"],
        ["invite", "Documents/team/a.md", "--one-time"], ["invite", "Documents/team/a.md", "--revoke"],
        ["requests", "block", "Documents/team/a.md", Self.bob], ["unshare", "Documents/team/a.md", "--yes"],
      ] {
        let refused = try people.alice.sheaf(words)
        #expect(
          refused.status == 1 && refused.errorText.contains("is shared as a part of Documents/team"), "\(refused)")
      }
      let left = try people.bob.sheaf("leave", "Shared/\(HubPlace.handle)/team/a.md")
      #expect(left.errorText.contains("to leave all of that: sheaf leave Shared/"), "\(left)")
      #expect(try people.alice.succeed("participants", "Documents/team").text.contains(#/bob.*edit/#))
    }
  }

  @Test func bobDeclinesAndTakesBackByTheLink() throws {
    try withPeople { people in
      try people.alice.shell("mkdir plans asked")
      try people.share("plans", can: "edit")
      try people.bob.wait()
      let url = try people.url("plans")
      #expect(try people.bob.succeed("leave", url).text == "Declined the invitation to plans.")
      #expect(try !people.bob.succeed("shares").text.contains("plans"))
      let late = try people.bob.sheaf("accept", url)
      #expect(late.status != 0, "\(late)")
      try eventually("alice hears of it", within: .seconds(60)) {
        try people.alice.succeed("notices").text.contains("declined the invitation to plans")
      }
      _ = try people.alice.succeed("share", "Documents/asked", "--allow-requests", "--expires", "7d")
      let asked = try people.url("asked")
      #expect(try people.bob.succeed("inspect", asked).text.contains("The link lets nobody new in after"))
      let once = try people.alice.succeed("invite", "Documents/asked", "--one-time").text
      #expect(try people.bob.succeed("inspect", once).text.contains("The link lets nobody new in after"))
      for said in ["Revoked 1 one-time link: none to Documents/asked lets anybody in any more.", "Nothing changed"] {
        #expect(try people.alice.succeed("invite", "Documents/asked", "--revoke").text.contains(said))
      }
      _ = try people.bob.succeed("accept", asked)
      #expect(try people.alice.succeed("requests").text.contains(Self.bob))
      #expect(try people.bob.succeed("shares").text.contains("You asked for access to\n  asked"))
      let back = try people.bob.succeed("leave", asked, "--json").text
      #expect(back.contains("\"declined\" : \"request\""), "\(back)")
      #expect(try !people.bob.succeed("shares").text.contains("asked"))
      #expect(try !people.alice.succeed("requests").text.contains(Self.bob))
      _ = try people.bob.succeed("accept", asked)
      _ = try people.alice.succeed("unshare", "Documents/asked", "--yes")
      try people.settle()
      let notices = try people.bob.succeed("notices").text
      #expect(notices.contains("declined your request for access to asked"), "\(notices)")
    }
  }

  /// Everybody hears of it when the hub puts a save beside another one, also on the machine that saved it.
  @Test func aSaveThatGoesBesideAnotherIsInTheNotices() throws {
    try withPeople { people in
      try people.alice.shell("mkdir team && head -c 10000 /dev/zero > team/a.dat")
      try people.join("team", can: "edit")
      try people.alice.succeed("sync", "--pause")
      try people.alice.shell("head -c 20000 /dev/urandom > team/a.dat")
      try Command.shell("head -c 30000 /dev/urandom > '\(people.shared("team/a.dat"))'").succeed()
      try people.bob.wait()
      try people.alice.succeed("sync", "--resume")
      try people.settle()
      let beside = try people.alice.shell("cd team && ls | grep laptop")
      for machine in [people.alice, people.bob] {
        try eventually("\(machine.name) hears of it", within: .seconds(60)) {
          let notices = try machine.succeed("notices").text
          return notices.contains("and another machine saved at once") && notices.contains("wrote is in \(beside)")
        }
      }
      // Both find it, where they see it, with the document that it is beside.
      let team = "\(people.alice.library.documents)/team"
      #expect(try people.alice.succeed("find", "--conflicts").text == "\(team)/\(beside)\tbeside \(team)/a.dat")
      let (copy, original) = (people.shared("team/\(beside)"), people.shared("team/a.dat"))
      #expect(try people.bob.succeed("find", "--conflicts").text == "\(copy)\tbeside \(original)")
      let status = try people.bob.succeed("status").text
      #expect(status.contains(#/Conflicts +1 document;/#), "\(status)")
      let besides = [people.alice, people.bob].filter {
        (try? $0.succeed("status").text.contains("what was saved here is beside it")) ?? false
      }
      #expect(besides.map(\.name) == [people.alice.name])
      let refused = try people.bob.sheaf("resolve", copy)
      #expect(refused.status == 1 && refused.errorText.contains("delete this one or rename it"))
      try Command.shell("mv '\(copy)' '\(people.shared("team/mine.dat"))'").succeed()
      try people.settle()
      for machine in [people.alice, people.bob] {
        #expect(try machine.succeed("find", "--conflicts").text == "", "\(machine.name)")
        let status = try machine.succeed("status").text
        #expect(!status.contains("Conflicts") && !status.contains("is beside it"), "\(machine.name): \(status)")
      }
    }
  }

  /// Who comments without the hub sees it at once, and once.
  @Test func aCommentThatWaitsForTheHubIsShown() throws {
    try withPeople { people in
      try people.alice.shell("mkdir team && echo x > team/a.md")
      try people.join("team", can: "edit")
      people.place.hub.kill()
      let paths = ["Documents/team/a.md", "Shared/\(HubPlace.handle)/team/a.md"]
      for (machine, path) in zip([people.alice, people.bob], paths) {
        _ = try machine.succeed("comment", path, "on a train")
        let told = try machine.succeed("activity", path).text
        #expect(told.contains("commented on a.md: on a train (waits for the hub)"), "\(machine.name): \(told)")
      }
      _ = try people.place.serve()
      try people.settle()
      for (machine, path) in zip([people.alice, people.bob], paths) {
        try eventually("the hub has told of both at \(machine.name)", within: .seconds(60)) {
          let told = try machine.succeed("activity", path).text
          return !told.contains("waits for the hub") && told.components(separatedBy: "on a train").count == 3
        }
      }
    }
  }

  @Test func whomAliceBlockedSheSeesInEachList() throws {
    try withPeople { people in
      try people.alice.shell("mkdir asked other")
      try people.share("other", can: "edit")
      _ = try people.alice.succeed("share", "Documents/asked", "--allow-requests")
      _ = try people.bob.succeed("accept", people.url("asked"))
      _ = try people.alice.succeed("requests", "block", "Documents/asked", Self.bob)
      let requests = try people.alice.succeed("requests").text
      #expect(requests.contains(Self.bob) && requests.contains("blocked"), "\(requests)")
      let shares = try people.alice.succeed("shares").text
      #expect(shares.contains("Blocked\n  Documents/asked"), "\(shares)")
    }
  }

  /// What is on the machine is told whatever the hub does, soon, and what it alone knows is said to be missing.
  @Test(arguments: [false, true]) func whatIsHereIsToldWithoutTheHub(isSilent: Bool) throws {
    try withPeople { people in
      try people.alice.shell("mkdir team && echo x > private.md")
      try people.join("team", can: "edit")
      let process = try #require(people.place.hub.process)
      if isSilent { Glibc.kill(process, SIGSTOP) } else { people.place.hub.kill() }
      defer { if isSilent { Glibc.kill(process, SIGCONT) } }
      for isMounted in [true, false] {
        if !isMounted {
          try people.alice.library.unmount()
          try eventually("its process ends", within: .seconds(60)) { people.alice.library.server == nil }
        }
        let status = try people.alice.succeed("status", "Documents/private.md").text
        #expect(status.contains("not known, since the hub cannot be asked") && status.contains("You can"), "\(status)")
        let begin = ContinuousClock.now
        let shares = try people.alice.succeed("shares").text
        // A connection that is not answered is given up after ten seconds.
        #expect(ContinuousClock.now - begin < .seconds(9), "\(isMounted)")
        let missing = "Not known, since the hub cannot be asked: requests for access and offers"
        #expect(shares.contains("Documents/team") && shares.contains(missing), "\(shares)")
        let json = try people.alice.succeed("shares", "--json")
        #expect(json.errorText.contains(missing) && !json.text.contains("missing"), "\(json)")
      }
    }
  }

  /// What was saved in a document that the hub does not have yet, since a program has it open, is from before as well.
  @Test func aShareWaitsForADocumentThatIsStillOpen() throws {
    try withPeople { people in
      try people.alice.shell("mkdir plans")
      try people.alice.wait()
      try people.alice.shell(
        """
        sh -c 'echo SECRET > plans/x'; sh -c 'echo open > plans/x'
        (exec 9>> plans/x; sleep 3) > /dev/null 2>&1 &
        """)
      // Nobody waits for the hub before.
      _ = try people.alice.succeed("share", "Documents/plans", "--with", Self.bob, "--can", "view")
      _ = try people.bob.succeed("accept", people.url("plans"))
      try people.settle()
      let path = "Shared/\(HubPlace.handle)/plans/x"
      #expect(try people.bob.succeed("show", path).text == "open")
      let versions = try people.bob.succeed("versions", path, "--json").text
      #expect(versions.components(separatedBy: "\"number\"").count == 2, "\(versions)")
    }
  }

  @Test func whatAliceSharesBobEditsAtHisMachine() throws {
    try withPeople { people in
      try people.alice.shell(
        "mkdir -p team/plans && echo one > team/a.md && echo Rome > team/plans/rome.md && echo secret > private.md")
      try people.alice.wait()
      try people.share("team", can: "edit")
      try people.bob.wait()
      let invited = try people.bob.succeed("shares").text
      #expect(invited.contains("team") && invited.contains(HubPlace.handle), "\(invited)")
      let offer = try people.bob.succeed("inspect", people.url("team")).text
      #expect(offer.contains("team") && offer.contains("edit"), "\(offer)")
      let path = try people.bob.succeed("accept", people.url("team")).text
      #expect(path == "Shared/\(HubPlace.handle)/team", "\(path)")
      try people.settle()
      #expect(people.text(people.shared("team/plans/rome.md")) == "Rome\n")
      // Bob's save is a version by bob, for both; alice's contents come back to bob.
      try Command.shell("echo two >> '\(people.shared("team/a.md"))'").succeed()
      try people.settle()
      #expect(people.text("\(people.alice.library.documents)/team/a.md") == "one\ntwo\n")
      for (machine, name) in [
        (people.alice, "Documents/team/a.md"), (people.bob, "Shared/\(HubPlace.handle)/team/a.md"),
      ] {
        let versions = try machine.succeed("versions", name).text
        #expect(versions.contains(HubPlace.handle) && versions.contains(Self.bob), "\(versions)")
      }
      try people.alice.shell("mv team/plans/rome.md team/roma.md && rmdir team/plans && echo three >> team/a.md")
      try people.settle()
      #expect(people.text(people.shared("team/roma.md")) == "Rome\n")
      #expect(people.text(people.shared("team/a.md")) == "one\ntwo\nthree\n")
      #expect(people.text(people.shared("team/plans")) == nil)
      // Attributes say the same at both machines, and nothing else of alice's is there.
      let read = "getfattr -d -m '^user.sheaf' --absolute-names"
      let attributes = try [people.shared("team/a.md"), "\(people.alice.library.documents)/team/a.md"].map {
        try Command.shell("\(read) '\($0)' | grep -v '^#' | grep -v 'share.role\\|share.status'").succeed().text
      }
      #expect(attributes[0] == attributes[1], "\(attributes)")
      let names = try Command.shell("cd '\(people.bob.library.mountpoint)' && find . | sort").succeed().text
      #expect(!names.contains("private"), "\(names)")
      // What can be read of either library is a sound one.
      for machine in [people.alice, people.bob] {
        let copy = "\(people.place.folder.path)/\(machine.name)-copy"
        _ = try machine.succeed("backup", copy)
        let repaired = try Command([try SheafProgram.path(), "repair", copy]).run()
        let lost = repaired.text.split(separator: "\n").filter { $0.hasPrefix("Lost: ") }
        #expect(repaired.status == 0 && lost.count == 1, "\(repaired)")
        #expect(lost.first?.hasPrefix("Lost: the connection of ") ?? false, "\(repaired)")
      }
    }
  }

  /// Each machine knows who did what, also one that was connected later: what bob saved, moved, made and deleted on his
  /// machine is undone from another one of alice's, and what she did herself stays.
  @Test func onePersonsDeedsAreUndoneFromAnotherMachine() throws {
    try withPeople { people in
      let second = try ReplicaMachine("second", people.place)
      defer { try? second.library.tearDown() }
      // The library is there before, and the account is not connected yet.
      try second.mount()
      try people.alice.shell(
        "mkdir -p team/plans && echo one > team/a.md && echo two > team/plans/b.md && echo three > team/c.md "
          + "&& echo four > team/d.md")
      try people.join("team", can: "edit")
      let time = try people.alice.shell("sleep 1.1; date -u +%Y-%m-%dT%H:%M:%SZ; sleep 1.1").trimmingCharacters(
        in: .whitespacesAndNewlines)
      try Command.shell(
        """
        cd '\(people.shared("team"))' && echo bobs > a.md && mv plans/b.md moved.md && rm c.md && mkdir bobs
        echo new > bobs/new.md && mv d.md gone.md
        """
      ).succeed()
      try people.alice.shell("echo hers > team/hers.md")
      try people.settle()
      try Command.shell("rm '\(people.shared("team/gone.md"))'").succeed()
      try people.settle()
      let link = try people.alice.succeed("device", "add").text
      _ = try second.succeed("connect", link, "--name", "second")
      try second.wait()
      for machine in [people.alice, second] {
        let deleted = try machine.succeed("deleted", "Documents/team").text
        #expect(deleted.contains("c.md") && deleted.contains(Self.bob), "\(machine.name): \(deleted)")
        let found = try machine.succeed("find", "--by", Self.bob, "--name", "new.md").text
        #expect(found.contains("team/bobs/new.md"), "\(machine.name): \(found)")
        let past = try Command.shell(
          "cd '\(machine.library.documents)/team/.versions/@\(time.replacing(":", with: "-"))' && find . | sort | xargs echo"
        ).succeed().text
        // Where something was before it was moved, a machine that came later does not know.
        let known = machine.name == second.name ? "./plans" : "./d.md ./plans ./plans/b.md"
        #expect(past == ". ./a.md ./c.md " + known, "\(machine.name): \(past)")
      }
      // A folder that was there before is its owner's.
      let folders = try people.bob.succeed("find", "--by", HubPlace.handle, "--name", "plans").text
      #expect(folders.contains("team/plans"), "\(folders)")
      // What is in her trash bob brings back, too.
      let his = try people.bob.succeed(
        "restore", "Shared/\(HubPlace.handle)/team", "--time", time, "--dry-run"
      ).text
      #expect(his.contains("recover  Shared/\(HubPlace.handle)/team/c.md"), "\(his)")
      // Of what alice did herself nothing is undone, and nothing counts as made by the machine that came later.
      let hers = try second.succeed(
        "restore", "Documents", "--time", time, "--by", HubPlace.handle, "--dry-run"
      ).text
      #expect(hers.contains("hers.md") && !hers.contains("moved.md") && !hers.contains("a.md"), "\(hers)")
      let all = try second.succeed("restore", "Documents/team", "--time", time, "--dry-run").text
      for item in ["a.md", "c.md", "hers.md", "bobs"] { #expect(all.contains(item), "\(all)") }
      #expect(all.contains("1 left alone"), "\(all)")
      // Documents was there before the machine was.
      let whole = try second.succeed("restore", "Documents", "--time", time, "--dry-run").text
      #expect(whole.contains("hers.md"), "\(whole)")
      let undone = try people.alice.succeed("restore", "Documents/team", "--time", time, "--by", Self.bob).text
      #expect(undone.contains("1 with earlier contents"), "\(undone)")
      try people.settle()
      let names = "find . | sort | xargs echo"
      let expected = ". ./a.md ./c.md ./d.md ./hers.md ./plans ./plans/b.md"
      #expect(try people.alice.shell("cd team && \(names)") == expected)
      #expect(try Command.shell("cd '\(people.shared("team"))' && \(names)").succeed().text == expected)
      #expect(people.text(people.shared("team/a.md")) == "one\n")
      #expect(people.text(people.shared("team/c.md")) == "three\n")
    }
  }

  @Test func whoMayOnlyReadKeepsWhatCouldNotBeSaved() throws {
    try withPeople { people in
      try people.alice.shell("mkdir team && echo one > team/a.md")
      try people.join("team", can: "edit")
      try people.place.hub.stop()
      try Command.shell(
        "echo mine >> '\(people.shared("team/a.md"))' && echo new > '\(people.shared("team/new.md"))'"
      ).succeed()
      // Alice changes the right while bob is away.
      try people.bob.library.unmount()
      _ = try people.place.serve()
      try people.alice.wait()
      _ = try people.alice.succeed("participant", "set", "Documents/team", Self.bob, "--can", "view")
      try people.bob.mount()
      try people.settle()
      #expect(people.text(people.shared("team/a.md")) == "one\n")
      #expect(people.text(people.shared("team/new.md")) == nil)
      #expect(people.text("\(people.bob.library.documents)/a (not saved).md") == "one\nmine\n")
      #expect(people.text("\(people.bob.library.documents)/new (not saved).md") == "new\n")
      #expect(try Command.shell("echo x >> '\(people.shared("team/a.md"))'").run().status != 0)
    }
  }

  /// The end of a right reaches open files, and the contents leave the machine with their history.
  @Test func whoIsRemovedHasNothingLeft() throws {
    try withPeople { people in
      try people.alice.shell("mkdir team && echo first-secret > team/a.md")
      try people.join("team", can: "edit")
      try people.alice.shell("echo second-secret > team/a.md && head -c 300000 /dev/urandom | base64 > team/large")
      try people.settle()
      let reader = try OpenFileReader(people.shared("team/a.md"))
      _ = try people.alice.succeed("participant", "remove", "Documents/team", Self.bob)
      try eventually("bob reads no more", within: .seconds(20)) { !reader.canRead() }
      try eventually("the share is gone", within: .seconds(20)) {
        people.text(people.shared("team/a.md")) == nil
      }
      try eventually("its items are gone", within: .seconds(30)) {
        let rows = try Command([
          "sqlite3", people.bob.library.library,
          "SELECT count(*) FROM items WHERE kind = 1; SELECT count(*) FROM replicas",
        ]).succeed().text
        return rows == "0\n1"
      }
      // What he had open until now, and before, is in none of the library's files.
      reader.close()
      try eventually("its contents are gone", within: .seconds(30)) {
        ["", "-wal", "-changes", "-working"].allSatisfy { suffix in
          let bytes = FileManager.default.contents(atPath: people.bob.library.library + suffix) ?? Data()
          return ["first-secret", "second-secret"].allSatisfy { bytes.range(of: Data($0.utf8)) == nil }
        }
      }
      #expect(people.text("\(people.alice.library.documents)/team/a.md") == "second-secret\n")
      // She lets him in again.
      try people.join("team", can: "view")
      #expect(people.text(people.shared("team/a.md")) == "second-secret\n")
    }
  }

  @Test func whoLeavesByRmdirIsOutAtTheHub() throws {
    try withPeople { people in
      try people.alice.shell("mkdir team && echo one > team/a.md")
      try people.join("team", can: "edit")
      try Command.shell("rmdir '\(people.shared("team"))'").succeed()
      try eventually("alice sees that bob left", within: .seconds(60)) {
        try !people.alice.succeed("participants", "Documents/team").text.contains(Self.bob)
      }
      #expect(people.text(people.shared("team/a.md")) == nil)
      #expect(people.text("\(people.alice.library.documents)/team/a.md") == "one\n")
    }
  }

  /// What leaves a share leaves the machines of those who take part, what comes in comes whole, and a document that is
  /// shared alone has its versions from then on.
  @Test func itemsComeIntoAShareAndLeaveIt() throws {
    try withPeople { people in
      try people.alice.shell(
        "mkdir -p team/out/deep inner/deep && echo a > team/out/deep/a && echo b > inner/deep/b && echo doc > doc.md")
      try people.join("team", can: "edit")
      #expect(people.text(people.shared("team/out/deep/a")) == "a\n")
      try people.alice.shell("mv team/out . && mv inner team/")
      try people.settle()
      #expect(people.text(people.shared("team/out/deep/a")) == nil)
      #expect(people.text(people.shared("team/inner/deep/b")) == "b\n")
      let left = try Command([
        "sqlite3", people.bob.library.library,
        "SELECT count(*) FROM items WHERE kind = 1; SELECT count(*) FROM deleted",
      ]).succeed().text
      #expect(left == "1\n0", "\(left)")
      // Out and in again.
      try people.alice.shell("mv out team/out && mv team/inner . && mv inner team/again")
      try people.settle()
      #expect(people.text(people.shared("team/out/deep/a")) == "a\n")
      #expect(people.text(people.shared("team/again/deep/b")) == "b\n")
      // What was deleted before it came here is in her trash alone.
      let recovered = try people.bob.library.sheaf("recover", people.shared("team/out/deep/gone"))
      #expect(recovered.status == 1)
      #expect(recovered.errorText.contains("can recover what was deleted before it came to this machine"))
      try people.join("doc.md", can: "edit")
      #expect(people.text(people.shared("doc.md")) == "doc\n")
      try Command.shell("echo more >> '\(people.shared("doc.md"))'").succeed()
      try people.settle()
      #expect(people.text("\(people.alice.library.documents)/doc.md") == "doc\nmore\n")
      // She deletes what is shared, and recovers it.
      try people.alice.shell("rm doc.md")
      try eventually("the document is gone", within: .seconds(20)) { people.text(people.shared("doc.md")) == nil }
      _ = try people.alice.succeed("recover", "Documents/doc.md")
      try eventually("the document is back", within: .seconds(30)) {
        people.text(people.shared("doc.md")) == "doc\nmore\n"
      }
      _ = try people.alice.succeed("unshare", "Documents/team", "--yes")
      try eventually("the share is gone", within: .seconds(20)) {
        people.text(people.shared("team/again/deep/b")) == nil
      }
      #expect(people.text(people.shared("doc.md")) == "doc\nmore\n")
    }
  }

  /// Bob writes to what alice takes out of the share, and makes something in a folder that goes.
  @Test func whatIsSavedInWhatLeftIsKept() throws {
    try withPeople { people in
      try people.alice.shell("mkdir -p team/out && echo a > team/out/a && echo b > team/b")
      try people.join("team", can: "edit")
      let bob = try BackgroundCommand(
        .shell("exec 3>> '\(people.shared("team/out/a"))'; echo first >&3; cat > /dev/null"))
      try eventually("bob has written", within: .seconds(10)) {
        people.text(people.shared("team/out/a")) == "a\nfirst\n"
      }
      try people.place.hub.stop()
      try Command.shell("echo new > '\(people.shared("team/out/new"))' && mkdir '\(people.shared("team/out/d"))'")
        .succeed()
      try people.alice.shell("mv team/out . && rm team/b")
      _ = try people.place.serve()
      try people.alice.wait()
      try eventually("what bob made is kept", within: .seconds(30)) {
        people.text("\(people.bob.library.documents)/new (not saved)") == "new\n"
      }
      try eventually("what bob wrote is kept", within: .seconds(60)) {
        people.text("\(people.bob.library.documents)/a (not saved)") == "a\nfirst\n"
      }
      bob.endInput()
      try people.settle()
      try eventually("nothing of it is left", within: .seconds(30)) {
        people.text(people.shared("team/out/a")) == nil && people.text(people.shared("team/b")) == nil
      }
      #expect(people.text("\(people.alice.library.documents)/out/a")?.hasPrefix("a\n") == true)
      #expect(people.text("\(people.alice.library.documents)/out/new") == nil)
    }
  }

  /// Saves that were on their way when the right ended, a new tree, and files of which the hub never hears.
  @Test func whatWasOnItsWayWhenTheShareEndedIsKept() throws {
    try withPeople { people in
      try people.alice.shell("mkdir -p team/plans && echo a > team/a.md && echo b > team/b.md")
      try people.join("team", can: "edit")
      try people.place.hub.stop()
      try Command.shell(
        """
        cd '\(people.shared("team"))' && echo mine >> a.md && mkdir -p new/deep && echo one > new/deep/one
        echo two > new/two && mv b.md new/ && echo more >> new/b.md && echo tmp > x.tmp
        """
      ).succeed()
      // It is planned to be sent, and cannot be.
      #expect(try people.bob.sheaf("sync", "--wait", "3").status == 1)
      try people.bob.library.unmount()
      _ = try people.place.serve()
      try people.alice.wait()
      _ = try people.alice.succeed("participant", "remove", "Documents/team", Self.bob)
      try people.bob.mount()
      let documents = people.bob.library.documents
      try eventually("everything is kept", within: .seconds(60)) {
        let kept = try Command.shell("cd '\(documents)' && cat *").run().text
        return ["mine", "one", "two", "more", "tmp"].allSatisfy { kept.contains($0) }
      }
      #expect(people.text(people.shared("team/a.md")) == nil)
      try people.alice.wait()
      #expect(people.text("\(people.alice.library.documents)/team/b.md") == "b\n")
    }
  }

  /// What the hub denies in a new folder is kept, and what was moved there is back in its place.
  @Test func aFolderThatIsDeniedKeepsWhatIsInIt() throws {
    try withPeople { people in
      try people.alice.shell("mkdir -p team && echo a > team/a.md && echo b > team/b.md")
      try people.join("team", can: "edit")
      try people.place.hub.stop()
      try Command.shell(
        """
        cd '\(people.shared("team"))' && mkdir -p new/deep && echo one > new/deep/one && echo two > new/two
        mv b.md new/ && echo more >> new/b.md
        """
      ).succeed()
      try people.bob.library.unmount()
      _ = try people.place.serve()
      try people.alice.wait()
      _ = try people.alice.succeed("participant", "set", "Documents/team", Self.bob, "--can", "view")
      try people.bob.mount()
      let documents = people.bob.library.documents
      try eventually("everything is kept", within: .seconds(60)) {
        let kept = try Command.shell("cd '\(documents)' && cat *").run().text
        return ["one", "two", "more"].allSatisfy { kept.contains($0) }
      }
      try eventually("b.md is back", within: .seconds(60)) { people.text(people.shared("team/b.md")) == "b\n" }
      #expect(people.text(people.shared("team/new/two")) == nil)
      try people.settle()
      #expect(people.text("\(people.alice.library.documents)/team/b.md") == "b\n")
    }
  }

  /// Of what bob changed meanwhile, what alice deleted is back, and what she took out of the share goes.
  @Test func whatAliceTookAwayDoesNotComeBack() throws {
    try withPeople { people in
      try people.alice.shell("mkdir -p team/out && echo a > team/a.md && echo b > team/b.md && echo c > team/out/c.md")
      try people.join("team", can: "edit")
      _ = try people.bob.succeed("sync", "--pause")
      try Command.shell(
        "cd '\(people.shared("team"))' && for f in a.md b.md out/c.md; do echo bob >> $f; done"
      ).succeed()
      try people.alice.shell("rm team/a.md && mv team/b.md . && mv team/out .")
      try people.alice.wait()
      _ = try people.bob.succeed("sync", "--resume")
      let documents = people.bob.library.documents
      try eventually("what bob saved is kept", within: .seconds(60)) {
        ["b", "c"].allSatisfy { people.text("\(documents)/\($0) (not saved).md") == "\($0)\nbob\n" }
      }
      try people.settle()
      #expect(people.text("\(people.alice.library.documents)/team/a.md") == "a\nbob\n")
      #expect(people.text(people.shared("team/a.md")) == "a\nbob\n")
      #expect(people.text("\(people.alice.library.documents)/b.md") == "b\n")
      for name in ["b.md", "out/c.md"] { #expect(people.text(people.shared("team/\(name)")) == nil) }
    }
  }

  /// Of a folder and of everything that alice has: what a program writes to what left is refused, and nothing that was
  /// saved before is lost.
  @Test(arguments: [false, true])
  func whatIsWrittenTooLateIsRefused(isEverything: Bool) throws {
    try withPeople { people in
      try people.alice.shell("mkdir -p team/out && echo a > team/out/a.md && echo b > team/b.md && echo c > team/c.md")
      try people.alice.wait()
      let item = isEverything ? "Documents" : "Documents/team"
      _ = try people.alice.succeed("share", item, "--with", Self.bob, "--can", "edit")
      let url = try Command.shell(
        "getfattr --only-values -n user.sheaf.share.url '\(people.alice.library.mountpoint)/\(item)'"
      ).succeed().text
      let place = try people.bob.succeed("accept", url).text.trimmingCharacters(in: .whitespacesAndNewlines)
      try people.settle()
      let team = "\(people.bob.library.mountpoint)/\(place)\(isEverything ? "/team" : "")"
      // What the hub had of it would come back there.
      _ = try people.bob.succeed("sync", "--pause")
      let late = try ["out/a.md", "b.md"].map { name in
        try BackgroundCommand(
          .shell("exec 3>> '\(team)/\(name)'; echo first >&3; read line; if echo late >&3; then exit 1; fi"))
      }
      try eventually("bob has written", within: .seconds(10)) {
        people.text("\(team)/out/a.md") == "a\nfirst\n" && people.text("\(team)/b.md") == "b\nfirst\n"
      }
      // Of all that she has, nothing leaves the share but what is destroyed.
      if isEverything {
        for name in ["out", "b.md"] { _ = try people.alice.succeed("purge", "Documents/team/\(name)", "--yes") }
      } else {
        try people.alice.shell("mv team/out team/b.md .")
      }
      try people.alice.wait()
      _ = try people.bob.succeed("sync", "--resume")
      let documents = people.bob.library.documents
      try eventually("what bob wrote is kept", within: .seconds(60)) {
        ["a", "b"].allSatisfy { people.text("\(documents)/\($0) (not saved).md") == "\($0)\nfirst\n" }
      }
      try eventually("all of it is gone", within: .seconds(30)) {
        ["out/a.md", "out", "b.md"].allSatisfy { access("\(team)/\($0)", F_OK) != 0 }
      }
      for each in late {
        try each.say("now")
        try each.wait(limit: .seconds(10))
      }
      try Command.shell("echo more >> '\(team)/c.md'").succeed()
      try people.settle()
      #expect(people.text("\(people.alice.library.documents)/team/c.md") == "c\nmore\n")
      #expect(try Command.shell("ls '\(people.alice.library.documents)/team'").succeed().text == "c.md")
    }
  }

  /// Bob leaves by `rm -r` of the entry, which takes longer than deletions wait: alice hears of none of them. What he
  /// deletes without leaving goes.
  @Test func whoLeavesByRemovingTheEntryDeletesNothing() throws {
    try withPeople { people in
      try people.alice.shell(
        "mkdir -p team/plans && for i in $(seq 60); do echo $i > team/plans/$i; done; echo a > team/a")
      try people.join("team", can: "edit")
      let tree = { try people.alice.shell("find team | sort") }
      let before = try tree()
      let place = try TemporaryFolder()
      defer { try? place.remove() }
      let script = """
        import os, shutil, sys, time
        team, place = sys.argv[1:]
        shutil.rmtree(team + "/plans"); os.unlink(team + "/a")
        open(place + "/deleted", "w").close()
        end = time.monotonic() + 100
        while not os.path.exists(place + "/go") and time.monotonic() < end: time.sleep(0.05)
        os.rmdir(team)
        open(place + "/left", "w").close()
        """
      try script.write(toFile: "\(place.path)/leave", atomically: true, encoding: .utf8)
      try Command.shell(
        "setsid python3 '\(place.path)/leave' '\(people.shared("team"))' '\(place.path)' > '\(place.path)/log' 2>&1 < /dev/null &"
      ).succeed()
      try eventually("bob's program has deleted", within: .seconds(60)) { access("\(place.path)/deleted", F_OK) == 0 }
      // Whatever else bob does goes.
      try Command.shell("echo b > '\(people.shared("team/b"))'").succeed()
      try eventually("what bob made is there", within: .seconds(12)) {
        access("\(people.alice.library.documents)/team/b", F_OK) == 0
      }
      #expect(try people.alice.shell("find team ! -name b | sort") == before)
      #expect(FileManager.default.createFile(atPath: "\(place.path)/go", contents: nil))
      try eventually("bob has left", within: .seconds(60)) { access("\(place.path)/left", F_OK) == 0 }
      try people.settle()
      #expect(access(people.shared("team"), F_OK) != 0)
      #expect(try people.alice.shell("find team ! -name b | sort") == before)
      #expect(try people.alice.succeed("deleted").text == "Nothing deleted that can come back.")
    }
  }

  @Test func whoDeletesWhatSheSharesIsSettled() throws {
    try withPeople { people in
      try people.alice.shell("mkdir -p team/plans && echo a > team/a.md && echo b > team/plans/b.md && echo c > c.md")
      try people.join("team", can: "edit")
      try people.join("c.md", can: "edit")
      try people.alice.shell("rm -r team && rm c.md")
      try people.settle()
      for name in ["team", "c.md"] { #expect(access(people.shared(name), F_OK) != 0, "\(name)") }
      try people.alice.shell("echo new > d.md")
      try people.settle()
    }
  }

  /// Nobody is invited, and nothing is shared, where one of those who are named is not known.
  @Test func sharingWithAnUnknownPersonIsNotHalfDone() throws {
    try withPeople { people in
      try people.alice.shell("mkdir team && echo a > team/a.md")
      try people.alice.wait()
      let unknown = "nobody@hub.example"
      let status = { try people.alice.shell("getfattr --only-values -n user.sheaf.share.status team") }
      for others in [[unknown], [Self.bob, unknown]] {
        let refused = try people.alice.sheaf(["share", "Documents/team"] + others.flatMap { ["--with", $0] })
        #expect(refused.status == 1, "\(refused)")
        #expect(try status() == "notShared")
        #expect(try people.alice.succeed("shares", "--json").text.contains("team") == false)
        try people.bob.wait()
        #expect(try people.bob.succeed("shares").text.contains("team") == false)
      }
      // Of a share that is there, too, all stays as it is.
      _ = try people.alice.succeed("share", "Documents/team", "--title", "ours")
      let refused = try people.alice.sheaf([
        "share", "Documents/team", "--with", Self.bob, "--with", unknown, "--title", "theirs",
      ])
      #expect(refused.status == 1)
      let participants = try people.alice.succeed("participants", "Documents/team").text
      #expect(!participants.contains(Self.bob) && !participants.contains("nobody"), "\(participants)")
      #expect(
        try people.alice.shell("getfattr --only-values -n user.sheaf.share.title team") == "ours")
    }
  }

  @Test func twoWhoSaveADocumentThatIsSharedAloneAreMerged() throws {
    try withPeople { people in
      try people.alice.shell("seq 20 > doc.txt")
      try people.join("doc.txt", can: "edit")
      _ = try people.bob.succeed("sync", "--pause")
      try people.alice.shell("sed -i 's/^3$/alice/' doc.txt")
      try Command.shell("sed -i 's/^17$/bob/' '\(people.shared("doc.txt"))'").succeed()
      try people.alice.wait()
      _ = try people.bob.succeed("sync", "--resume")
      try people.settle()
      for path in ["\(people.alice.library.documents)/doc.txt", people.shared("doc.txt")] {
        let text = people.text(path) ?? ""
        #expect(text.contains("alice") && text.contains("bob"), "\(text)")
      }
    }
  }

  /// The owner's rules hold on the machines of those who take part, and no rules of theirs.
  @Test func theOwnersIgnoreRulesHoldForMembers() throws {
    try withPeople { people in
      try people.alice.shell("mkdir team && echo '*.log' > team/.sheafignore && echo one > team/a.md")
      try people.join("team", can: "edit")
      let shared = people.shared("team")
      let make =
        "cd '\(shared)' && echo mine > b.log && mkdir node_modules && echo n > node_modules/n && echo two > b.md"
      try Command.shell(make).succeed()
      let version = "getfattr --only-values -n user.sheaf.version"
      for name in ["b.log", "node_modules/n"] {
        #expect(try Command.shell("\(version) '\(shared)/\(name)'").succeed().text == "0", "\(name)")
      }
      try people.settle()
      #expect(try people.alice.shell("ls -A team") == ".sheafignore\na.md\nb.md")
      #expect(people.text("\(shared)/b.log") == "mine\n")
      // The owner makes other rules elsewhere, and they hold here.
      try people.alice.shell("echo '*.tmp2' > team/.sheafignore")
      try people.settle()
      try Command.shell("cd '\(shared)' && echo log > c.log && echo tmp > c.tmp2").succeed()
      try people.settle()
      #expect(try people.alice.shell("ls -A team") == ".sheafignore\na.md\nb.md\nc.log")
      // A member's are none.
      let refused = try Command.shell("cd '\(shared)' && mkdir sub && echo '*' > sub/.sheafignore").run()
      #expect(refused.status != 0, "\(refused)")
      _ = try Command.shell("echo '*.md' >> '\(shared)/.sheafignore'").run()
      try people.settle()
      try Command.shell("echo d > '\(shared)/d.md'; echo d > '\(shared)/d.tmp2'").succeed()
      try people.settle()
      #expect(try people.alice.shell("ls -A team") == ".sheafignore\na.md\nb.md\nc.log\nd.md\nd.tmp2\nsub")
    }
  }

  /// Who joins late has the history since the share began, and no more.
  @Test func whoJoinsLateSeesWhatWasSavedSinceTheShareBegan() throws {
    try withPeople { people in
      try people.alice.shell("mkdir team && echo before > team/a.md")
      try people.alice.wait()
      try people.alice.shell("echo one > team/a.md")
      try people.alice.wait()
      try people.share("team", can: "edit")
      for text in ["two", "three"] {
        try people.alice.shell("echo \(text) > team/a.md; echo \(text) > team/new.md")
        try people.alice.wait()
      }
      _ = try people.bob.succeed("accept", people.url("team"))
      try people.settle()
      let path = "Shared/\(HubPlace.handle)/team"
      for (name, texts) in [("a.md", ["one", "two", "three"]), ("new.md", ["two", "three"])] {
        try eventually("bob has the history of \(name)", within: .seconds(20)) {
          let versions = try Command.shell("ls '\(people.bob.library.mountpoint)/\(path)/.versions/\(name)'").succeed()
            .text.split(separator: "\n")
          return try versions.map {
            try Command.shell("cat '\(people.bob.library.mountpoint)/\(path)/.versions/\(name)/\($0)'").succeed().text
          } == texts
        }
      }
    }
  }

  /// What a hub would refuse is refused in the words of a library's own shares, which say what to do.
  @Test func whatAHubRefusesSaysWhatToDo() throws {
    try withPeople { people in
      try people.alice.shell("mkdir team && echo one > team/a.md")
      try people.join("team", can: "edit")
      let (own, shared) = ("Documents/team", "Shared/\(HubPlace.handle)/team")
      let (nobody, ask) = ("nobody@hub.example", "ask \(HubPlace.handle)")
      let link = try people.url("team").split(separator: "/s/")
      let none = "\(link[0])/s/\(link[1].first == "A" ? "B" : "A")\(link[1].dropFirst())"
      let refused: [(ReplicaMachine, [String], String, String)] = [
        (people.bob, ["unshare", shared, "--yes"], "only its owner may do that", ask),
        (people.bob, ["share", shared, "--anyone", "edit"], "only its owner may do that", ask),
        (people.bob, ["share", shared, "--with", nobody], "only its owner and administrators invite people", ask),
        (people.bob, ["participant", "add", shared, nobody], "only its owner and administrators invite people", ask),
        (people.bob, ["participant", "set", shared, Self.bob, "--can", "view"], "only its owner and administ", ask),
        (people.bob, ["participant", "remove", shared, HubPlace.handle], "only its owner and administrators", ask),
        (people.bob, ["invite", shared, "--one-time"], "you may not invite people to that", ask),
        (people.bob, ["requests", shared], "only its owner and administrators may do that", ask),
        (people.bob, ["requests", "deny", shared, nobody], "only its owner and administrators may do that", ask),
        (people.bob, ["accept", none], "the link: there is no such share", "ask whoever gave it to you"),
        (people.alice, ["leave", own], "\(own): is shared by you", "sheaf unshare \(own)"),
        (people.alice, ["participant", "set", own, nobody, "--can", "view"], "takes no part in", "sheaf participants"),
        (people.alice, ["participant", "remove", own, nobody], "takes no part in", "sheaf participants"),
        (people.alice, ["participant", "add", own, nobody], "has no account at https://127.0.0.1", "sheaf invite"),
        (people.alice, ["participant", "remove", own, HubPlace.handle], "owns \(own)", "always takes part"),
        (people.alice, ["requests", "approve", own, nobody], "does not ask for access to", "participant add"),
      ]
      for (machine, words, reason, advice) in refused {
        let answer = try machine.sheaf(words)
        #expect(answer.status == 1, "\(words): \(answer)")
        #expect(answer.errorText.contains(reason) && answer.errorText.contains(advice), "\(words): \(answer)")
      }
      // What changes nothing says so; what is changed does not.
      for words in [["add", own, Self.bob], ["set", own, Self.bob, "--can", "edit"]] {
        let told = try people.alice.sheaf(["participant"] + words).text
        #expect(told.contains("Nothing changed: \(Self.bob) is a participant of \(own), and can edit"), "\(told)")
      }
      let changed = try people.alice.succeed("participant", "set", own, Self.bob, "--can", "view").text
      #expect(changed == "\(Self.bob) is a participant of \(own), and can view.", "\(changed)")
      // Whoever ended the connection hears why nothing can be changed here.
      try people.settle()
      _ = try people.alice.succeed("disconnect")
      let late = try people.alice.sheaf("unshare", own, "--yes")
      #expect(late.status == 1 && late.errorText.contains("is not connected any more"), "\(late)")
    }
  }

  /// What others share can be read after the end of the connection, and nobody writes there what nobody hears of.
  @Test(arguments: ["participant", "administrator"]) func whoDisconnectsWritesInNoShare(_ role: String) throws {
    try withPeople { people in
      try people.alice.shell("echo one > doc")
      try people.join("doc", can: "edit")
      _ = try people.alice.succeed("participant", "set", "Documents/doc", Self.bob, "--role", role)
      try people.settle()
      try people.bob.shell("echo two >> '\(people.shared("doc"))'")
      try people.settle()
      _ = try people.bob.succeed("disconnect")
      let written = try Command.shell("cat '\(people.shared("doc"))'; echo three >> '\(people.shared("doc"))'").run()
      #expect(written.status != 0 && written.text == "one\ntwo", "\(written)")
    }
  }

  /// A program's temporary file beside documents that are shared one by one becomes a save of the one whose name it
  /// takes, whichever that is.
  @Test func severalDocumentsThatAreSharedAloneAreSavedByTemporaryFiles() throws {
    try withPeople { people in
      let names = ["one.txt", "two.txt", "three.txt"]
      for name in names {
        try people.alice.shell("echo \(name) > \(name)")
        try people.join(name, can: "edit")
      }
      let shared = people.shared("")
      for (number, name) in names.enumerated() {
        try Command.shell("cd '\(shared)' && sed -i 's/$/ by bob/' \(name)").succeed()
        #expect(try people.bob.library.check() == [])
        // The other way of saving: the document is set aside first, and its name is made anew.
        if number > 0 { try Command.shell("cd '\(shared)' && mv \(name) \(name)~ && cp \(name)~ \(name)").succeed() }
      }
      try people.settle()
      for name in names {
        let saved = "\(name) by bob\n"
        #expect(people.text("\(people.alice.library.documents)/\(name)") == saved)
        #expect(people.text(people.shared(name)) == saved)
        let versions = try people.alice.succeed("versions", "Documents/\(name)").text
        #expect(versions.contains(Self.bob) && versions.contains(HubPlace.handle), "\(versions)")
      }
      // What one of them is to bob is so for that one alone.
      _ = try people.alice.succeed("participant", "set", "Documents/two.txt", Self.bob, "--can", "view")
      try people.settle()
      try Command.shell("cd '\(shared)' && ! sed -i s/bob/rob/ two.txt && sed -i s/bob/rob/ three.txt").succeed()
      try people.settle()
      #expect(people.text("\(people.alice.library.documents)/two.txt") == "two.txt by bob\n")
      #expect(people.text("\(people.alice.library.documents)/three.txt") == "three.txt by rob\n")
    }
  }

  /// What stands for people elsewhere is nobody as whom a command acts.
  @Test func nobodyActsAsSomebodyElsewhere() throws {
    try withPeople { people in
      try people.alice.shell("mkdir team && echo a > team/a.md")
      try people.join("team", can: "edit")
      let keys = try Command([
        "sqlite3", people.bob.library.library, "SELECT handle FROM accounts WHERE hub IS NOT NULL",
      ]).succeed().text.split(separator: "\n")
      #expect(keys.count == 2, "\(keys)")
      for key in keys.map(String.init) {
        #expect(try people.bob.sheaf("purge", "Documents/team/a.md", "--yes", "--as", key).status == 1)
        #expect(try people.bob.sheaf("account", "add", key).status == 1)
        #expect(try people.bob.sheaf("account", "remove", key).status == 1)
        #expect(try people.bob.sheaf("activity", "--as", key).status == 1)
      }
      #expect(people.text(people.shared("team/a.md")) == "a\n")
    }
  }

  @Test func sharingNeedsTheHubAndSaysSo() throws {
    try withPeople { people in
      try people.alice.shell("mkdir team && echo one > team/a.md")
      try people.join("team", can: "edit")
      try people.place.hub.stop()
      let refused = try people.alice.sheaf("participant", "set", "Documents/team", Self.bob, "--can", "view")
      #expect(refused.status == 1 && refused.errorText.contains("127.0.0.1"), "\(refused)")
      // Everything that is here works.
      try Command.shell("echo two >> '\(people.shared("team/a.md"))' && cat '\(people.shared("team/a.md"))'").succeed()
      _ = try people.place.serve()
      try people.settle()
      #expect(people.text("\(people.alice.library.documents)/team/a.md") == "one\ntwo\n")
    }
  }

  @Test func strangersJoinByALinkAndAskForAccess() throws {
    try withPeople { people in
      try people.alice.shell("mkdir open asked && echo one > open/a.md && echo two > asked/b.md")
      try people.alice.wait()
      _ = try people.alice.succeed("share", "Documents/open", "--anyone", "view")
      _ = try people.bob.succeed("accept", people.url("open"))
      try people.settle()
      #expect(people.text(people.shared("open/a.md")) == "one\n")
      _ = try people.alice.succeed("share", "Documents/asked", "--allow-requests")
      let asked = try people.bob.succeed("accept", people.url("asked")).text
      #expect(asked.contains("Asked for access"), "\(asked)")
      for list in ["requests", "shares"] { #expect(try people.alice.succeed(list).text.contains(Self.bob), "\(list)") }
      _ = try people.alice.succeed("requests", "approve", "Documents/asked", Self.bob)
      try eventually("bob is in", within: .seconds(20)) { people.text(people.shared("asked/b.md")) == "two\n" }
      let link = try people.alice.succeed("invite", "Documents/asked", "--one-time").text
      #expect(link.hasPrefix("https://127.0.0.1:"), "\(link)")
    }
  }

  /// A link at a hub ends as one of a library does, and both machines say when.
  @Test func aLinkEndsAtTheHub() throws {
    try withPeople { people in
      try people.alice.shell("mkdir open && echo one > open/a.md")
      try people.alice.wait()
      let told = try people.alice.succeed("share", "Documents/open", "--anyone", "view", "--expires", "1h").text
      #expect(try people.alice.succeed("shares").text.contains("can view; the link ends 2"))
      #expect(told.contains("lets nobody new in after"), "\(told)")
      let read = "getfattr --only-values -n user.sheaf.share.expires"
      let end = try people.alice.shell("\(read) open")
      _ = try people.bob.succeed("accept", people.url("open"))
      try people.settle()
      #expect(try Command.shell("\(read) '\(people.shared("open"))'").succeed().text == end)
      _ = try people.bob.succeed("leave", "Shared/\(HubPlace.handle)/open")
      _ = try people.alice.succeed("share", "Documents/open", "--expires", "1s")
      let url = try people.url("open")
      try eventually("the link has ended", within: .seconds(20)) { try people.bob.sheaf("inspect", url).status != 0 }
      let refused = try people.bob.sheaf("accept", url)
      #expect(refused.status == 1 && refused.errorText.contains("the link was good until"), "\(refused)")
      // As all times, it is where whoever reads it is.
      #expect(!refused.errorText.contains(#/[0-9]T[0-9:]+Z/#), "\(refused)")
      _ = try people.alice.succeed("share", "Documents/open", "--expires", "never")
      #expect(try Command.shell("\(read) '\(people.alice.library.documents)/open'").run().status != 0)
      _ = try people.bob.succeed("accept", url)
      try people.settle()
      #expect(people.text(people.shared("open/a.md")) == "one\n")
    }
  }

  /// To somebody who takes no part the hub shows no share, and yet they hear what became of them.
  @Test func whoIsInvitedOrTurnedDownHearsOfIt() throws {
    try withPeople { people in
      try people.alice.shell("mkdir open asked v1.2")
      try people.share("open", can: "view")
      let url = try people.url("open")
      // A folder has no extension.
      try people.share("v1.2", can: "view")
      try eventually("bob is invited to it") { try people.bob.succeed("shares").text.contains("v1.2") }
      func hears(_ text: String) throws {
        try eventually("a notice: \(text)", within: .seconds(20)) {
          try people.bob.succeed("notices").text.contains(text)
        }
      }
      try hears("invites you to open: \(url)")
      _ = try people.alice.succeed("share", "Documents/asked", "--allow-requests")
      _ = try people.bob.succeed("accept", people.url("asked"))
      _ = try people.alice.succeed("requests", "deny", "Documents/asked", Self.bob)
      try hears("declined your request for access to asked")
      let activity = try people.bob.succeed("activity").text
      for text in ["invited \(Self.bob) to open", "declined \(Self.bob)"] {
        #expect(activity.contains(text), "\(activity)")
      }
      _ = try people.bob.succeed("notices", "--clear")
      #expect(try !people.bob.succeed("notices").text.contains("invites you"))
      // Whoever was turned down hears of an invitation that follows at once.
      try people.share("asked", can: "view")
      try hears("invites you to asked: \(people.url("asked"))")
      // Nothing of it is an item.
      #expect(try people.bob.succeed("deleted").text.isEmpty || !people.bob.succeed("deleted").text.contains("open"))
      _ = try people.bob.succeed("accept", url)
      try people.settle()
      #expect(access(people.shared("."), F_OK) == 0)
    }
  }
}

/// A file that stays open, and from which is read again and again.
private struct OpenFileReader {
  private let file: FileHandle

  init(_ path: String) throws {
    guard let file = FileHandle(forReadingAtPath: path) else { throw Command.Failure(description: "\(path)") }
    self.file = file
  }

  func canRead() -> Bool {
    do {
      try file.seek(toOffset: 0)
      return try file.read(upToCount: 1) != nil
    } catch {
      return false
    }
  }

  func close() { try? file.close() }
}
