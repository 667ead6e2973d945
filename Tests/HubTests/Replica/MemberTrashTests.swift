import MountKit
import Testing

/// What was deleted from a share, at the machines of people who take part: they find it in their trash, as in a library
/// of one machine, and those who may edit bring it back.
@Suite(.serialized) struct MemberTrashTests {
  private static let plans = "Shared/\(HubPlace.handle)/plans"

  /// Runs a story in which bob takes part in alice's `plans`, where `doc` has two versions and `folder` two documents.
  private func story(can permission: String = "edit", _ body: (SharedReplicaTests.People) throws -> Void) throws {
    try SharedReplicaTests().withPeople { people in
      try people.alice.shell(
        """
        mkdir -p plans/folder && sh -c 'echo one > plans/doc' && sh -c 'echo two > plans/doc'
        echo b > plans/folder/b && echo c > plans/folder/c
        """)
      try people.alice.wait()
      try people.join("plans", can: permission)
      try body(people)
    }
  }

  private func deleted(_ people: SharedReplicaTests.People) throws -> String {
    try people.bob.succeed("deleted", Self.plans).text
  }

  /// Runs a script in bob's `plans`, and returns what it prints.
  private func bob(_ people: SharedReplicaTests.People, _ script: String) throws -> String {
    try Command.shell("cd '\(people.shared("plans"))' && \(script)").succeed().text
  }

  private func id(_ machine: ReplicaMachine, _ path: String) throws -> String {
    try Command.shell("getfattr --only-values -n user.sheaf.id '\(machine.library.mountpoint)/\(path)'").succeed().text
  }

  @Test(arguments: [true, false]) func bobBringsBackWhatWasDeleted(byAlice: Bool) throws {
    try story { people in
      let before = try id(people.alice, "Documents/plans/doc")
      let found = try people.bob.succeed("find", "--deleted", "--name", "doc").text
      #expect(!found.contains("doc"), "\(found)")
      if byAlice {
        try people.alice.shell("rm -r plans/doc plans/folder")
      } else {
        // Others save in between, so that the last version came from elsewhere.
        try people.alice.shell("sh -c 'echo three > plans/doc'")
        try people.settle()
        _ = try bob(people, "rm -r doc folder")
      }
      try people.settle()
      #expect(try people.alice.shell("ls plans").isEmpty)
      let list = try deleted(people)
      #expect(list.contains("plans/doc") && list.contains("plans/folder") && !list.contains("folder/b"), "\(list)")
      #expect(list.contains(byAlice ? HubPlace.handle : SharedReplicaTests.bob), "\(list)")
      #expect(try people.bob.succeed("find", "--deleted", "--name", "doc").text.contains("plans/doc"))
      #expect(try bob(people, "cat .deleted/folder/b .deleted/doc") == (byAlice ? "b\ntwo" : "b\nthree"))
      _ = try people.bob.succeed("recover", "\(Self.plans)/doc")
      _ = try bob(people, "mv .deleted/folder ./back")
      try people.settle()
      #expect(try people.alice.shell("cd plans; cat doc back/b back/c") == (byAlice ? "two\nb\nc" : "three\nb\nc"))
      #expect(try bob(people, "cat doc back/b back/c") == (byAlice ? "two\nb\nc" : "three\nb\nc"))
      #expect(try id(people.alice, "Documents/plans/doc") == before)
      #expect(try id(people.bob, "\(Self.plans)/doc") == before)
      let versions = try people.alice.shell("cat plans/.versions/doc/*")
      #expect(versions == (byAlice ? "one\ntwo" : "one\ntwo\nthree"))
      // What was before it entered bob does not see, as before.
      #expect(try bob(people, "cat .versions/doc/*") == versions.dropFirst(4))
      #expect(try !people.alice.succeed("deleted").text.contains("plans"))
      #expect(try !deleted(people).contains("doc"))
      let activity = try people.alice.succeed("activity", "Documents/plans").text
      #expect(activity.contains("\(SharedReplicaTests.bob) recovered"), "\(activity)")
    }
  }

  @Test func whoOnlyViewsSeesTheTrashAndBringsNothingBack() throws {
    try story(can: "view") { people in
      try people.alice.shell("rm plans/doc")
      try people.settle()
      #expect(try bob(people, "cat .deleted/doc") == "two")
      let refused = try people.bob.sheaf("recover", "\(Self.plans)/doc")
      #expect(refused.status != 0 && refused.errorText.contains("the share does not allow it"), "\(refused)")
      try people.settle()
      #expect(try people.alice.shell("ls plans") == "folder")
    }
  }

  /// What its owner brings back, or moves with its folder, is what members see.
  @Test func theOwnersTrashIsThatOfMembers() throws {
    try story { people in
      try people.alice.shell("rm plans/doc && rm plans/folder/b && rm plans/folder/c")
      try people.settle()
      #expect(try deleted(people).contains("plans/doc"))
      // Back to its place; out of the share; destroyed.
      _ = try people.alice.succeed("recover", "Documents/plans/doc")
      try people.alice.shell("mv plans/folder/.deleted/b ./mine")
      _ = try people.alice.succeed("purge", "Documents/plans/folder/c", "--yes")
      try people.settle()
      #expect(try bob(people, "cat doc; ls folder/.deleted") == "two")
      #expect(try !people.bob.succeed("deleted").text.contains("folder"))
      // A folder that leaves takes what was deleted from it along.
      try people.alice.shell("mkdir plans/in && echo SECRET > plans/in/x")
      try people.settle()
      try people.alice.shell("rm plans/in/x")
      try people.settle()
      #expect(try deleted(people).contains("plans/in/x"))
      try people.alice.shell("mv plans/in .")
      try people.settle()
      #expect(try !people.bob.succeed("deleted").text.contains("in/x"))
      #expect(try Command.shell("grep -c SECRET '\(people.bob.library.library)'").run().text == "0")
    }
  }

  /// All of it is read anew when a folder comes in; what was deleted meanwhile is in the trash all the same.
  @Test func whatWasDeletedWhileAFolderCameInIsInTheTrash() throws {
    try story { people in
      _ = try people.bob.succeed("sync", "--pause")
      try people.alice.shell("mkdir new && echo n > new/n && rm -r plans/folder && mv new plans/ && rm plans/doc")
      try people.alice.wait()
      _ = try people.bob.succeed("sync", "--resume")
      try people.settle()
      #expect(try bob(people, "cat new/n .deleted/doc .deleted/folder/c") == "n\ntwo\nc")
      _ = try people.bob.succeed("recover", "\(Self.plans)/folder")
      try people.settle()
      #expect(try people.alice.shell("cat plans/folder/b plans/folder/c") == "b\nc")
    }
  }

  /// The last save is not at the hub when the deletion is.
  @Test func whatBobSavedAndDeletedAtOnceComesBackWhoeverBringsItBack() throws {
    try story { people in
      _ = try bob(
        people,
        "sh -c 'echo new > doc'; rm doc; sh -c 'echo newer > folder/b'; mv folder/b '\(people.bob.library.documents)/mine'"
      )
      try people.settle()
      #expect(try people.bob.shell("ls") == "mine")
      #expect(try bob(people, "cat .deleted/doc folder/.deleted/b") == "new\nnewer")
      _ = try people.alice.succeed("recover", "Documents/plans/doc")
      _ = try people.bob.succeed("recover", "\(Self.plans)/folder/b")
      try people.settle()
      #expect(try people.alice.shell("cat plans/doc plans/folder/b; ls plans") == "new\nnewer\ndoc\nfolder")
      #expect(try !people.bob.succeed("notices").text.contains("could not be saved"))
    }
  }

  /// All of it is read anew, since a folder came in; what was destroyed meanwhile, or brought back outside, goes all the
  /// same.
  @Test func whatLeavesTheOwnersTrashWhileAFolderComesInLeaves() throws {
    try story { people in
      try people.alice.shell("echo SECRET > plans/x && mkdir new && echo n > new/n")
      try people.settle()
      try people.alice.shell("rm plans/doc plans/x")
      try people.settle()
      #expect(try bob(people, "cat .deleted/x") == "SECRET")
      _ = try people.bob.succeed("sync", "--pause")
      _ = try people.alice.succeed("purge", "Documents/plans/x", "--yes")
      try people.alice.shell("mv plans/.deleted/doc mine && mv new plans/")
      try people.alice.wait()
      _ = try people.bob.succeed("sync", "--resume")
      try people.settle()
      #expect(try bob(people, "cat new/n; ls .deleted") == "n")
      #expect(try Command.shell("grep -c SECRET '\(people.bob.library.library)'").run().text == "0")
    }
  }

  /// What its owner destroys is destroyed, though bob brought it back before he heard of that; nothing waits for ever.
  @Test func whatItsOwnerPurgedGoes() throws {
    try story { people in
      try people.alice.shell("rm plans/doc")
      try people.settle()
      _ = try people.bob.succeed("sync", "--pause")
      _ = try people.bob.succeed("recover", "\(Self.plans)/doc")
      _ = try people.alice.succeed("purge", "Documents/plans/doc", "--yes")
      try people.alice.wait()
      _ = try people.bob.succeed("sync", "--resume")
      try people.settle()
      #expect(try bob(people, "ls . .deleted") == ".:\nfolder\n\n.deleted:")
      #expect(try people.alice.shell("ls plans plans/.deleted") == "plans:\nfolder\n\nplans/.deleted:")
    }
  }

  /// Both without the hub: what was deleted here comes back here, and what was changed here comes back for all.
  @Test func whatIsBroughtBackOnATrainIsBackForAll() throws {
    try story { people in
      _ = try people.bob.succeed("sync", "--pause")
      _ = try bob(people, "rm -r doc folder && mv .deleted/doc . && sh -c 'echo mine > doc'")
      try people.alice.shell("sh -c 'echo hers > plans/doc'; rm plans/doc")
      try people.alice.wait()
      _ = try people.bob.succeed("sync", "--resume")
      try people.settle()
      #expect(try bob(people, "cat doc") == "mine")
      #expect(try people.alice.shell("cat plans/doc; ls plans/.deleted") == "mine\nfolder")
      // As a version, or beside it: both changed the same line.
      let texts = try people.alice.shell("cat plans/.versions/doc/* plans/doc*")
      #expect(texts.contains("hers"), "\(texts)")
    }
  }

  /// What was deleted before the folder was shared, and before it came in, is the owner's alone.
  @Test func whatWasDeletedBeforeIsTheOwners() throws {
    try SharedReplicaTests().withPeople { people in
      try people.alice.shell(
        "mkdir -p plans old && echo SECRET > plans/x && echo SECRET > old/y && echo open > plans/z && rm plans/x old/y")
      try people.join("plans", can: "edit")
      try people.alice.shell("mv old plans/ && rm plans/z")
      try people.settle()
      #expect(try bob(people, "ls .deleted old/.deleted; cat .deleted/z") == ".deleted:\nz\n\nold/.deleted:\nopen")
      #expect(try Command.shell("grep -c SECRET '\(people.bob.library.library)'").run().text == "0")
    }
  }
}
