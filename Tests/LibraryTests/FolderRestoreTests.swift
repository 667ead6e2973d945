import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// Making folders what they were.
struct FolderRestoreTests {
  /// Restores a folder as one of some people; returns what was done.
  @discardableResult
  private func restore(
    _ people: People, _ who: People.Name, _ folder: String, _ time: Timestamp, by: People.Name? = nil,
    until: Timestamp? = nil, dryRun: Bool? = nil
  ) throws -> FolderRestoration {
    try people.as(who) { person in
      try people.library.restoreFolder(
        person.path(folder), FolderRestoreRequest(time: time, by: by?.handle, until: until, dryRun: dryRun)
      ) { _ in }
    }
  }

  /// What steps do, without the reasons.
  private func words(_ restoration: FolderRestoration) -> Set<String> {
    Set(
      restoration.steps.map { step in
        let ending = step.to.map { " \($0)" } ?? step.version.map { " \($0)" } ?? ""
        return "\(step.action.rawValue) \(step.path)\(ending)"
      })
  }

  /// A morning of one person's is undone; what they did before and afterwards stays.
  @Test func onePersonsActionsOfASpanAreUndone() throws {
    try People.story { people in
      let (alice, bob) = (try people.as(.alice) { $0 }, try people.as(.bob) { $0 })
      let (team, seen) = ("Documents/w", "Shared/alice@example.com/w")
      try alice.mkdir(team)
      for name in ["edited", "edited later", "moved", "moved later", "gone", "gone later", "hers"] {
        try alice.save("\(team)/\(name)", "1")
      }
      try people.share(team, with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try bob.save("\(seen)/edited", "before")
      people.clock.advance(60)
      let begin = people.clock.now
      people.clock.advance(60)
      for name in ["edited", "edited later", "made", "made and edited later"] {
        try bob.save("\(seen)/\(name)", "in it")
      }
      for name in ["moved", "moved later"] { try bob.rename("\(seen)/\(name)", "\(seen)/\(name) once") }
      try bob.unlink("\(seen)/gone")
      let end = people.clock.now
      people.clock.advance(60)
      for name in ["edited later", "made and edited later", "made later"] { try bob.save("\(seen)/\(name)", "later") }
      try bob.rename("\(seen)/moved later once", "\(seen)/moved twice")
      try bob.unlink("\(seen)/gone later")
      people.clock.advance(60)
      let done = try restore(people, .alice, team, begin, by: .bob, until: end)
      #expect(
        words(done) == [
          "restore Documents/w/edited 2", "move Documents/w/moved once Documents/w/moved", "recover Documents/w/gone",
          "delete Documents/w/made", "leave Documents/w/edited later", "leave Documents/w/moved twice",
          "leave Documents/w/made and edited later",
        ])
      #expect(done.steps.compactMap(\.reason).allSatisfy { $0.hasPrefix("somebody has") })
      #expect(
        try alice.present(team) == [
          "edited": "before", "edited later": "later", "moved": "1", "moved twice": "1", "gone": "1", "hers": "1",
          "made and edited later": "later", "made later": "later",
        ])
      for (by, until) in [(nil, end), (People.Name.bob, begin)] {
        #expect(throws: SheafError.self) { try restore(people, .alice, team, begin, by: by, until: until) }
      }
    }
  }

  /// What one person moved out of a folder that another one removed since is left alone, and the dry run says so. A
  /// folder that they removed themselves comes back for it.
  @Test(arguments: [true, false]) func whatHasNoFolderAnyMoreIsLeftAlone(_ isTheirs: Bool) throws {
    try People.story { people in
      let (alice, bob) = (try people.as(.alice) { $0 }, try people.as(.bob) { $0 })
      let (team, seen) = ("Documents/w", "Shared/alice@example.com/w")
      for folder in [team, "\(team)/a", "\(team)/b", "\(team)/b/c"] { try alice.mkdir(folder) }
      for name in ["1", "2"] { try alice.save("\(team)/b/c/\(name)", name) }
      try people.share(team, with: [(.bob, .readWrite)])
      people.clock.advance(60)
      let time = people.clock.now
      people.clock.advance(60)
      try bob.rename("\(seen)/b/c/1", "\(seen)/a/one")
      try bob.unlink("\(seen)/b/c/2")
      let (remover, place) = isTheirs ? (bob, seen) : (alice, team)
      try remover.rmdir("\(place)/b/c")
      try remover.rmdir("\(place)/b")
      people.clock.advance(60)
      let planned = words(try restore(people, .alice, team, time, by: .bob, dryRun: true))
      let done = words(try restore(people, .alice, team, time, by: .bob))
      #expect(planned == done)
      if isTheirs {
        #expect(done.contains("move \(team)/a/one \(team)/b/c/1") && done.count == 4, "\(done)")
        #expect(try alice.read("\(team)/b/c/2") == "2")
      } else {
        #expect(done == ["leave \(team)/a/one", "leave \(team)/b/c/2"])
        #expect(try alice.read("\(team)/a/one") == "1")
      }
    }
  }

  /// What a restoration brought into a folder goes back out when that is undone, with the contents that it had, unless
  /// somebody saved it since.
  @Test func undoingGivesBackWhatGoesOut() throws {
    try People.story { people in
      let alice = try people.as(.alice) { $0 }
      for folder in ["p", "p/z", "r"] { try alice.mkdir("Documents/\(folder)") }
      for name in ["f", "g", "z/h"] { try alice.save("Documents/p/\(name)", "first") }
      people.clock.advance(60)
      let time = people.clock.now
      people.clock.advance(60)
      for name in ["f", "g", "z/h"] { try alice.save("Documents/p/\(name)", "second") }
      for name in ["f", "g", "z"] { try alice.rename("Documents/p/\(name)", "Documents/r/\(name)") }
      people.clock.advance(60)
      let done = try restore(people, .alice, "Documents/p", time)
      #expect(try alice.present("Documents/p") == ["f": "first", "g": "first", "z": "/", "z/h": "first"])
      people.clock.advance(60)
      try alice.save("Documents/p/g", "third")
      people.clock.advance(60)
      let before = try #require(done.before)
      try restore(people, .alice, "Documents/p", before)
      #expect(try alice.present("Documents/p") == [:])
      #expect(try alice.present("Documents/r") == ["f": "second", "g": "third", "z": "/", "z/h": "second"])
    }
  }

  /// Who takes one of two names away has moved nothing.
  @Test func aNameThatSomebodyTookFromSeveralIsNoMove() throws {
    try People.story { people in
      let (team, seen) = ("Documents/w", "Shared/alice@example.com/w")
      try people.as(.alice) { (alice) throws in
        try alice.mkdir(team)
        try people.share(team, with: [(.bob, .readWrite)])
        for name in ["h1", "moved"] { try alice.save("\(team)/\(name)", name) }
        people.clock.advance(60)
        try alice.link("\(team)/h1", "\(team)/h2")
      }
      people.clock.advance(60)
      let time = people.clock.now
      people.clock.advance(60)
      try people.as(.bob) { (bob) throws in
        try bob.unlink("\(seen)/h1")
        try bob.rename("\(seen)/moved", "\(seen)/m1")
        people.clock.advance(60)
        try bob.rename("\(seen)/m1", "\(seen)/m2")
      }
      people.clock.advance(60)
      let done = try restore(people, .alice, team, time, by: .bob)
      #expect(words(done) == ["leave Documents/w/h2", "move Documents/w/m2 Documents/w/moved"])
      try people.as(.alice) { (alice) throws in
        #expect(try alice.present(team) == ["h2": "h1", "moved": "moved"])
      }
    }
  }

  /// What comes back into a share was elsewhere in between, and what it was there is nobody's to see.
  @Test func participantsSeeNothingOfWhatWasElsewhere() throws {
    try People.story { people in
      let (team, seen) = ("Documents/team", "Shared/alice@example.com/team")
      try people.as(.alice) { (alice) throws in
        for folder in [team, "\(team)/draft"] { try alice.mkdir(folder) }
        try people.share(team, with: [(.bob, .readWrite)])
        people.clock.advance(60)
        try alice.save("\(team)/draft/doc", "public")
      }
      people.clock.advance(60)
      let time = people.clock.now
      people.clock.advance(60)
      try people.as(.alice) { (alice) throws in
        try alice.rename("\(team)/draft", "Documents/draft")
        people.clock.advance(60)
        try alice.save("Documents/draft/doc", "secret")
        try alice.save("Documents/draft/new", "new")
      }
      people.clock.advance(60)
      // As clocks do, it goes on from one action to the next.
      people.clock.ticks(true)
      try restore(people, .alice, team, time)
      people.clock.ticks(false)
      people.clock.advance(60)
      try people.as(.bob) { (bob) throws in
        #expect(try bob.read("\(seen)/draft/doc") == "public")
        #expect(try bob.versions("\(seen)/draft/doc").map(\.number) == [3])
        #expect(try bob.library.deleted(bob.name.handle, below: nil).map(\.path) == [])
      }
      #expect(try people.as(.alice) { try $0.versions("\(team)/draft/doc").count } == 3)
    }
  }

  /// A folder goes back into a share without what was made in it since, and without what another share lost to it.
  @Test(arguments: [false, true]) func whatBelongsElsewhereIsNeverInAShareInBetween(_ isDeep: Bool) throws {
    try People.story { people in
      let (team, seen) = ("Documents/team", "Shared/alice@example.com/team")
      try people.as(.alice) { (alice) throws in
        for folder in [team, "\(team)/f", "Documents/zz", "Documents/zz/SECRET diary"] { try alice.mkdir(folder) }
        for number in 1...3 { try alice.save("Documents/zz/SECRET diary/\(number)", "\(number)") }
        try alice.save("\(team)/f/doc", "public")
        try people.share(team, with: [(.bob, .readOnly)])
        try people.share("Documents/zz", with: [(.carol, .readOnly)])
      }
      people.clock.advance(60)
      let time = people.clock.now
      people.clock.advance(60)
      try people.as(.alice) { (alice) throws in
        try alice.rename("\(team)/f", "Documents/f")
        people.clock.advance(60)
        var hidden = "Documents/f/SECRET dismissals"
        try alice.mkdir(hidden)
        if isDeep {
          hidden += "/SECRET 2027"
          try alice.mkdir(hidden)
        }
        try alice.rename("Documents/zz/SECRET diary", "\(hidden)/SECRET diary")
        try alice.save("\(hidden)/SECRET list", "list")
      }
      people.clock.advance(60)
      let heard = try people.library.events(after: 0, limit: 1000, for: People.Name.bob.handle).events
      let start = heard.last?.sequence ?? 0
      people.clock.ticks(true)
      let done = try restore(people, .alice, "Documents", time)
      people.clock.ticks(false)
      people.clock.advance(60)
      #expect(!done.steps.contains { $0.action == .leave }, "\(done.steps)")
      try people.as(.alice) { (alice) throws in
        #expect(try alice.names("Documents/zz/SECRET diary").sorted() == ["1", "2", "3"])
        #expect(try alice.names("\(team)/f") == ["doc"])
      }
      try people.as(.bob) { (bob) throws in
        #expect(try bob.read("\(seen)/f/doc") == "public")
        #expect(try bob.library.deleted(bob.name.handle, below: nil).map(\.path) == [])
        let events = try bob.library.events(after: start, limit: 100, for: bob.name.handle).events
        #expect(!events.isEmpty)
        for event in events { #expect(!"\(event)".contains("SECRET"), "\(event)") }
      }
    }
  }

  /// What changes places goes back, whatever is in what.
  @Test func whatChangedPlacesGoesBack() throws {
    try People.story { people in
      let folders = ["a", "a/in", "b", "b/in", "c", "c/d", "c/d/e"]
      func tree(_ alice: Person, _ folder: String = "Documents") throws -> Set<String> {
        var all: Set<String> = []
        for name in try alice.names(folder) {
          let path = "\(folder)/\(name)"
          all.insert(path)
          if !name.hasPrefix("doc") { all.formUnion(try tree(alice, path)) }
        }
        return all
      }
      let before = try people.as(.alice) { (alice) throws in
        for folder in folders {
          try alice.mkdir("Documents/\(folder)")
          try alice.save("Documents/\(folder)/doc \(folder.last ?? " ")", folder)
        }
        return try tree(alice)
      }
      people.clock.advance(60)
      let time = people.clock.now
      people.clock.advance(60)
      try people.as(.alice) { (alice) throws in
        try alice.exchange("Documents/a/in", "Documents/b/in")
        try alice.exchange("Documents/a", "Documents/b")
        // Upside down: e has c, and c has d.
        try alice.rename("Documents/c/d/e", "Documents/e")
        try alice.rename("Documents/c", "Documents/e/c")
        try alice.mkdir("Documents/a/new")
        try alice.rename("Documents/e", "Documents/a/new/e")
        #expect(try tree(alice) != before)
      }
      people.clock.advance(60)
      let done = try restore(people, .alice, "Documents", time)
      try people.as(.alice) { (alice) throws in
        #expect(try tree(alice) == before, "\(done.steps)")
      }
    }
  }

  /// Who takes part hears no name and no version of what was before it entered the share, and brings none back.
  @Test(arguments: [false, true]) func participantsHearNothingOfBeforeEntry(_ isOnePersons: Bool) throws {
    try People.story { people in
      let (team, seen) = ("Documents/team", "Shared/alice@example.com/team")
      try people.as(.alice) { (alice) throws in
        for folder in [team, "Documents/draft", "Documents/draft/SECRET"] { try alice.mkdir(folder) }
        for name in ["SECRET1", "SECRET2", "doc"] { try alice.save("Documents/draft/\(name)", "a \(name)") }
        try people.share(team, with: [(.bob, .readWrite)])
      }
      people.clock.advance(60)
      let time = people.clock.now
      people.clock.advance(60)
      try people.as(.alice) { (alice) throws in
        try alice.rename("Documents/draft/SECRET1", "Documents/draft/one")
        try alice.rename("Documents/draft/SECRET2", "Documents/draft/gone")
        try alice.rename("Documents/draft/SECRET", "Documents/draft/folder")
        try alice.save("Documents/draft/doc", "later")
        people.clock.advance(60)
        try alice.rename("Documents/draft", "\(team)/draft")
        people.clock.advance(60)
        try alice.unlink("\(team)/draft/gone")
        try alice.save("\(team)/draft/one", "now")
      }
      people.clock.advance(60)
      for dryRun in [true, false] {
        let restoration = try restore(people, .bob, seen, time, by: isOnePersons ? .alice : nil, dryRun: dryRun)
        for step in restoration.steps {
          #expect(!"\(step.path) \(step.to ?? "")".contains("SECRET"), "\(step)")
          #expect(step.version.map { $0 > 1 } ?? true || !step.path.hasSuffix("/doc"), "\(step)")
        }
      }
      try people.as(.alice) { (alice) throws in
        #expect(try !alice.names("\(team)/draft").contains { $0.hasPrefix("SECRET") })
        #expect(try alice.read("\(team)/draft/doc") == "later")
      }
    }
  }

  /// Whatever two people did, the folder becomes what it was at a time, and what it was before when that is undone.
  @Test func aFolderBecomesWhatItWas() throws {
    var random = SeededRandom()
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/w") }
      try people.share("Documents/w", with: [(.bob, .readWrite)])
      people.clock.advance(1)
      let folders: [People.Name: String] = [.alice: "Documents/w", .bob: "Shared/alice@example.com/w"]
      var story = PastStory(people, folders)
      for round in 0..<12 {
        for _ in 0..<25 { try story.step(&random) }
        let (first, last) = (story.moments[0].time.seconds, people.clock.now.seconds)
        let time = Timestamp(seconds: Int64.random(in: max(first, last - 400)...last, using: &random))
        let who: People.Name = round % 2 == 0 ? .alice : .bob
        people.clock.advance(5)
        let dry = try restore(people, who, folders[who]!, time, dryRun: true)
        #expect(try people.as(.alice) { try $0.present("Documents/w") } == story.tree, "a dry run does nothing")
        let done = try restore(people, who, folders[who]!, time)
        #expect(done.steps.allSatisfy { $0.action != .leave }, "\(done.steps) \(random.note)")
        let (present, held) = (try people.as(.alice) { try $0.present("Documents/w") }, story.held(at: time))
        #expect(present == held, "at \(time): \(done.steps.map(\.path)) \(random.note)")
        let former = story.tree
        story.note(held)
        #expect(dry.changes.isEmpty == done.changes.isEmpty, random.note)
        // Again: there is nothing to do.
        #expect(try restore(people, who, folders[who]!, time).changes == [], random.note)
        people.clock.advance(5)
        guard let before = done.before else { continue }
        if round % 3 == 0 { continue }
        try restore(people, who, folders[who]!, before)
        #expect(try people.as(.alice) { try $0.present("Documents/w") } == former, "undone: \(random.note)")
        story.note(former)
      }
    }
  }

  /// Each kind of action, and what is told of it.
  @Test func eachActionIsUndoneAndTold() throws {
    try People.story { people in
      let alice = try people.as(.alice) { $0 }
      try alice.mkdir("Documents/w")
      try alice.mkdir("Documents/w/sub")
      try alice.mkdir("Documents/other")
      for name in ["edited", "moved", "out", "sub/gone"] { try alice.save("Documents/w/\(name)", "1") }
      try alice.save("Documents/other/in", "1")
      let time = people.clock.now
      people.clock.advance(60)
      try alice.save("Documents/w/edited", "2")
      try alice.rename("Documents/w/moved", "Documents/w/sub/renamed")
      try alice.rename("Documents/w/out", "Documents/other/out")
      try alice.rename("Documents/other/in", "Documents/w/in")
      try alice.unlink("Documents/w/sub/gone")
      try alice.mkdir("Documents/w/new")
      try alice.save("Documents/w/new/made", "1")
      people.clock.advance(60)
      let expected: Set<String> = [
        "restore Documents/w/edited 1", "move Documents/w/sub/renamed Documents/w/moved",
        "move Documents/other/out Documents/w/out", "move Documents/w/in Documents/other/in",
        "recover Documents/w/sub/gone", "delete Documents/w/new", "delete Documents/w/new/made",
      ]
      #expect(words(try restore(people, .alice, "Documents/w", time, dryRun: true)) == expected)
      let start = people.library.lastEvent
      let done = try restore(people, .alice, "Documents/w", time)
      #expect(words(done) == expected)
      #expect(
        try alice.present("Documents/w")
          == ["edited": "1", "moved": "1", "out": "1", "sub": "/", "sub/gone": "1"])
      #expect(try alice.present("Documents/other") == ["in": "1"])
      let events = try people.library.events(
        after: start, limit: 100, for: People.Name.alice.handle, in: .all
      ).events
      let types = events.map(\.type)
      #expect(Set(types) == [.edit, .moved, .created, .deleted])
      #expect(try alice.versions("Documents/w/edited").map(\.cause) == [.save, .save, .restore])
      // What was made is among the deleted, with its history.
      let deleted = try people.library.deleted(People.Name.alice.handle, below: nil).map(\.path)
      #expect(Set(deleted) == ["Documents/w/new", "Documents/w/new/made"])
    }
  }

  /// Only one person's actions are undone; what others went on with stays, and is told.
  @Test func onePersonsActionsAreUndone() throws {
    try People.story { people in
      let (alice, bob) = (try people.as(.alice) { $0 }, try people.as(.bob) { $0 })
      let shared = "Shared/alice@example.com/w"
      try alice.mkdir("Documents/w")
      for name in ["both", "his", "hers", "moved", "movedon", "gone"] { try alice.save("Documents/w/\(name)", "1") }
      try people.share("Documents/w", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      let time = people.clock.now
      people.clock.advance(60)
      try bob.save("\(shared)/his", "bob 1")
      people.clock.advance(60)
      try bob.save("\(shared)/his", "bob 2")
      try bob.save("\(shared)/both", "bob")
      try bob.rename("\(shared)/moved", "\(shared)/m1")
      try bob.rename("\(shared)/movedon", "\(shared)/m2")
      try bob.unlink("\(shared)/gone")
      try bob.save("\(shared)/made", "bob")
      try bob.save("\(shared)/made and changed", "bob")
      people.clock.advance(60)
      try alice.save("Documents/w/both", "alice")
      try alice.save("Documents/w/hers", "alice")
      try alice.rename("Documents/w/m2", "Documents/w/m3")
      try alice.save("Documents/w/made and changed", "alice")
      try alice.save("Documents/w/alice's", "alice")
      people.clock.advance(60)
      let done = try restore(people, .alice, "Documents/w", time, by: .bob)
      #expect(
        words(done) == [
          "restore Documents/w/his 1", "move Documents/w/m1 Documents/w/moved", "recover Documents/w/gone",
          "delete Documents/w/made", "leave Documents/w/both", "leave Documents/w/m3",
          "leave Documents/w/made and changed",
        ])
      #expect(done.steps.allSatisfy { ($0.action == .leave) == ($0.reason != nil) })
      #expect(
        try alice.present("Documents/w") == [
          "his": "1", "both": "alice", "hers": "alice", "moved": "1", "m3": "1", "gone": "1",
          "made and changed": "alice", "alice's": "alice",
        ])
      people.clock.advance(60)
      let before = try #require(done.before)
      try restore(people, .alice, "Documents/w", before)
      #expect(try alice.present("Documents/w")["his"] == "bob 2")
      #expect(try alice.present("Documents/w")["made"] == "bob")
      #expect(try alice.present("Documents/w")["gone"] == nil)
    }
  }

  /// An editor restores within the share, a viewer does not, and nobody takes out of it what they may not.
  /// What lay in a folder that was given away, and was moved out of it and deleted before that, does not come back there.
  @Test func nothingComesBackToWhatIsAnothersByNow() throws {
    try People.story { people in
      let alice = try people.as(.alice) { $0 }
      try alice.mkdir("Documents/w")
      try alice.mkdir("Documents/w/team")
      try alice.save("Documents/w/team/x", "one")
      try people.share("Documents/w/team", with: [(.carol, .readWrite)])
      people.clock.advance(60)
      let time = people.clock.now
      people.clock.advance(60)
      try alice.rename("Documents/w/team/x", "Documents/w/x")
      try alice.save("Documents/w/x", "private")
      people.clock.advance(60)
      try alice.unlink("Documents/w/x")
      let id = try alice.offer("Documents/w/team", to: .bob)
      _ = try people.as(.bob) { try $0.take(id) }
      people.clock.advance(60)
      let done = try restore(people, .alice, "Documents/w", time, by: .alice)
      #expect(done.steps.map(\.action) == [.leave], "\(done)")
      #expect(try people.as(.bob) { try $0.names("Documents/team") } == [])
      #expect(try people.library.deleted(People.Name.alice.handle, below: nil).map(\.path) == ["Documents/w/x"])
    }
  }

  @Test func rightsAreThoseOfEachAction() throws {
    try People.story { people in
      let alice = try people.as(.alice) { $0 }
      try alice.mkdir("Documents/w")
      try alice.mkdir("Documents/own")
      try alice.save("Documents/own/secret", "1")
      try alice.save("Documents/w/a", "1")
      try people.share("Documents/w", with: [(.bob, .readWrite), (.carol, .readOnly)])
      people.clock.advance(60)
      let time = people.clock.now
      people.clock.advance(60)
      try alice.rename("Documents/own/secret", "Documents/w/secret")
      try alice.save("Documents/w/a", "2")
      people.clock.advance(60)
      let shared = "Shared/alice@example.com/w"
      expect(.accessDenied) { try restore(people, .carol, shared, time) }
      expect(.accessDenied) { try restore(people, .carol, shared, time, dryRun: true) }
      expect(.notFound) { try restore(people, .bob, shared, Timestamp(seconds: time.seconds - 1000)) }
      expect(.invalid) { try restore(people, .bob, shared, Timestamp(seconds: time.seconds + 1000)) }
      expect(.invalid) { try restore(people, .alice, "Documents/w/a", time) }
      let done = try restore(people, .bob, shared, time)
      #expect(words(done) == ["restore \(shared)/a 1", "leave \(shared)/secret"])
      #expect(done.steps.allSatisfy { !($0.reason ?? "").contains("own") })
      #expect(try alice.present("Documents/w") == ["a": "1", "secret": "1"])
      people.clock.advance(60)
      #expect(
        words(try restore(people, .alice, "Documents/w", time)) == [
          "move Documents/w/secret Documents/own/secret"
        ])
    }
  }

  /// What comes back to a share from elsewhere is seen from then on alone.
  @Test func whatComesBackToAShareEntersIt() throws {
    try People.story { people in
      let alice = try people.as(.alice) { $0 }
      try alice.mkdir("Documents/w")
      try alice.mkdir("Documents/own")
      try people.share("Documents/w", with: [(.bob, .readOnly)])
      people.clock.advance(60)
      for name in ["moved", "deleted"] { try alice.save("Documents/w/\(name)", "1") }
      let time = people.clock.now
      people.clock.advance(60)
      for name in ["moved", "deleted"] {
        try alice.rename("Documents/w/\(name)", "Documents/own/\(name)")
        people.clock.advance(60)
        try alice.save("Documents/own/\(name)", "secret")
        people.clock.advance(60)
        try alice.save("Documents/own/\(name)", "2")
        people.clock.advance(60)
      }
      try alice.unlink("Documents/own/deleted")
      people.clock.advance(60)
      try restore(people, .alice, "Documents/w", time)
      #expect(try alice.present("Documents/w") == ["moved": "1", "deleted": "1"])
      let bob = try people.as(.bob) { $0 }
      for name in ["moved", "deleted"] {
        let seen = try bob.versions("Shared/alice@example.com/w/\(name)").map(\.number)
        // In a moment in which the clock stands still, the version with which it entered is the one that came after.
        #expect(seen.contains(4) && Set(seen).isSubset(of: [3, 4]), "\(name): \(seen)")
      }
    }
  }

  /// What a program has written and not saved is a version before.
  @Test func whatIsNotSavedIsAVersionBefore() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("w")
    try fixture.save("w/a", "1")
    let time = fixture.clock.now
    fixture.clock.advance(60)
    let handle = try fixture.open("w/a")
    try fixture.write(handle, Array("2".utf8))
    let made = try fixture.open("w/b", O_RDWR | O_CREAT)
    try fixture.write(made, Array("new".utf8))
    fixture.clock.advance(1)
    let done = try fixture.library.restoreFolder(fixture.path("w"), .init(time: time)) { _ in }
    #expect(Set(done.steps.map(\.action)) == [.restore, .delete])
    #expect(try fixture.text("w/a") == "1")
    #expect(try fixture.version("w/a", 2) == "2")
    try fixture.library.release(handle)
    try fixture.library.release(made)
    fixture.clock.advance(60)
    _ = try fixture.library.restoreFolder(fixture.path("w"), .init(time: #require(done.before))) { _ in }
    // Before, it was there, and nothing of it was saved; what was written then is a version.
    #expect(try fixture.find("w/b") != nil)
    #expect(try fixture.version("w/b", 1) == "new")
    try fixture.finish()
  }

  /// A name that something else has by now, which stays, is not taken from it.
  @Test func whatStaysKeepsItsName() throws {
    try People.story { people in
      let (alice, bob) = (try people.as(.alice) { $0 }, try people.as(.bob) { $0 })
      let shared = "Shared/alice@example.com/w"
      try alice.mkdir("Documents/w")
      try alice.save("Documents/w/a.md", "1")
      try people.share("Documents/w", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      let time = people.clock.now
      people.clock.advance(60)
      try bob.unlink("\(shared)/a.md")
      try alice.save("Documents/w/a.md", "alice")
      people.clock.advance(60)
      let done = try restore(people, .alice, "Documents/w", time, by: .bob)
      #expect(words(done) == ["recover Documents/w/a (2).md"])
      #expect(try alice.present("Documents/w") == ["a.md": "alice", "a (2).md": "1"])
    }
  }

  /// One that is cut short goes on when it is done again: here its person may not go on for a while.
  @Test func aRestorationThatIsCutShortGoesOn() throws {
    try People.story { people in
      let alice = try people.as(.alice) { $0 }
      let shared = "Shared/alice@example.com/w"
      try alice.mkdir("Documents/w")
      try people.share("Documents/w", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      for number in 0..<20 { try alice.save("Documents/w/f\(number)", "1") }
      let time = people.clock.now
      let tree = try alice.present("Documents/w")
      people.clock.advance(60)
      try alice.mkdir("Documents/w/d")
      for number in 0..<20 {
        switch number % 4 {
        case 0: try alice.save("Documents/w/f\(number)", "2")
        case 1: try alice.rename("Documents/w/f\(number)", "Documents/w/d/f\(number)")
        case 2: try alice.unlink("Documents/w/f\(number)")
        default: try alice.save("Documents/w/d/new\(number)", "1")
        }
      }
      people.clock.advance(60)
      #expect(try restore(people, .bob, shared, time, dryRun: true).changes.count == 21)
      let changed = try alice.present("Documents/w")
      let bob = try people.as(.bob) { try $0.path(shared) }
      var before: Timestamp?
      expect(.accessDenied) {
        _ = try people.library.restoreFolder(bob, .init(time: time)) { progress in
          if progress.done == 0 { before = progress.before }
          if progress.done == 9 { try? alice.set("Documents/w", .bob, .readOnly) }
        }
      }
      #expect(try alice.present("Documents/w") != tree)
      try alice.set("Documents/w", .bob, .readWrite)
      // A folder that was not empty yet may be among the nine.
      let left = try restore(people, .bob, shared, time).changes.count
      #expect((12...13).contains(left), "\(left)")
      #expect(try alice.present("Documents/w") == tree)
      // The moment that was told before it began undoes both.
      people.clock.advance(60)
      try restore(people, .bob, shared, try #require(before))
      #expect(try alice.present("Documents/w") == changed)
    }
  }
}
