import Fuse
import Synchronization
import Testing

@testable import SheafMount

/// When the kernel may remember names in a folder that others change (rules 1 to 4 of ``ChangedFolders``).
@Suite struct ChangedFoldersTests {
  private final class Kernel: ChangedFolders.KernelNames {
    let expirations = Atomic(0)
    let forgotten = Atomic(0)

    func invalidateEntry(_ name: FileName, in parent: NodeID) throws(Errno) -> Bool {
      forgotten.add(1, ordering: .relaxed)
      return true
    }

    func expireNames() throws(Errno) { expirations.add(1, ordering: .relaxed) }

    var count: Int { expirations.load(ordering: .relaxed) }
  }

  private static let name = FileName(Array("name".utf8))

  private func folders(expiresNames: Bool = true) -> (ChangedFolders, Kernel) {
    let (folders, kernel) = (ChangedFolders(expiresNames: expiresNames), Kernel())
    folders.connect(kernel)
    return (folders, kernel)
  }

  private func change(_ folders: ChangedFolders, _ ino: Int64) { folders.forget(Self.name, in: Node.inode(ino).id) }

  @Test func aFolderThatOthersChangeIsAskedAboutForAThousandLookups() {
    let (folders, kernel) = folders()
    #expect(folders.timeout(in: 5) == Entry.forever)
    change(folders, 5)
    change(folders, 5)
    #expect(kernel.count == 1)
    for _ in 0..<1000 { #expect(folders.timeout(in: 5) == 0 && folders.timeout(in: 6) == Entry.forever) }
    #expect(folders.timeout(in: 5) == Entry.forever)
    // Its names may be remembered by now, so the next change expires them.
    change(folders, 5)
    #expect(kernel.count == 2 && folders.timeout(in: 5) == 0)
    // Each change begins the count anew.
    for _ in 0..<900 { _ = folders.timeout(in: 5) }
    change(folders, 5)
    for _ in 0..<1000 { #expect(folders.timeout(in: 5) == 0) }
    #expect(folders.timeout(in: 5) == Entry.forever && kernel.count == 2)
  }

  @Test func aNameFromAListingIsRememberedForASecondAtMost() {
    let (folders, _) = folders()
    #expect(folders.listedTimeout(in: 5) == 1)
    change(folders, 5)
    #expect(folders.listedTimeout(in: 5) == 0 && folders.listedTimeout(in: 6) == 1)
    let (others, _) = self.folders(expiresNames: false)
    #expect(others.listedTimeout(in: 5) == Entry.forever)
  }

  @Test func aNameThatIsMovedFromOrToSuchAFolderExpires() {
    let (folders, kernel) = folders()
    folders.noteMove(5, 6)
    #expect(kernel.count == 0)
    change(folders, 5)
    folders.noteMove(7, 8)
    folders.noteMove(5, 5)
    #expect(kernel.count == 1)
    folders.noteMove(7, 5)
    folders.noteMove(5, 7)
    #expect(kernel.count == 3)
  }

  @Test func oneNameIsForgottenWhereNobodyElseGetsIn() {
    let (folders, kernel) = folders(expiresNames: false)
    change(folders, 5)
    #expect(kernel.count == 0 && kernel.forgotten.load(ordering: .relaxed) == 1)
    #expect(folders.timeout(in: 5) == Entry.forever)
  }
}
