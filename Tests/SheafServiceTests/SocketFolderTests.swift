import Foundation
import Glibc
import Logging
import SheafLibrary
import SheafModel
import SheafService
import Testing

/// The socket of a library that root has open, whose owner puts a link in place of its folder: root makes and removes
/// it in the library's own folder and nowhere else.
@Suite(.enabled(if: geteuid() == 0, "opening the library of another user needs root")) struct SocketFolderTests {
  private static let stranger: uid_t = 65_534

  /// The stranger's library, and a folder of root's.
  private struct Given {
    let folder: String
    let library: Library

    var home: String { folder + "/home" }
    var moved: String { folder + "/moved" }
    var secret: String { folder + "/secret" }
    static let socket = "library.sqlite-socket"

    init() throws {
      folder = FileManager.default.temporaryDirectory.path + "/sheaf-\(UUID().uuidString)"
      try #require(mkdir(folder, 0o755) == 0 && mkdir(folder + "/home", 0o755) == 0)
      try #require(mkdir(folder + "/secret", 0o700) == 0)
      try #require(chown(folder + "/home", SocketFolderTests.stranger, SocketFolderTests.stranger) == 0)
      library = try Library.open(LibraryLocation(path: folder + "/home/library.sqlite"))
    }

    func service() throws -> SheafService {
      try SheafService(library: library, mounts: nil, logger: Logger(label: "test"))
    }

    /// What the owner of the folder above may do at any moment.
    func swap() throws { try #require(rename(home, moved) == 0 && symlink("secret", home) == 0) }

    func names(_ folder: String) throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder) }

    func end() throws {
      try library.close()
      try FileManager.default.removeItem(atPath: folder)
    }
  }

  private func isThere(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  @Test func noServiceBeginsInAnotherFolder() async throws {
    let given = try Given()
    try given.swap()
    #expect {
      try given.service()
    } throws: {
      ($0 as? SheafError)?.kind == .busy || ($0 as? SheafError)?.kind == .accessDenied
    }
    #expect(try given.names(given.secret) == [])
    // Nor in one that the library's owner may enter, where the library is not.
    #expect(chmod(given.secret, 0o755) == 0)
    #expect(throws: SheafError.self) { try given.service() }
    #expect(try given.names(given.secret) == [])
    try given.end()
  }

  @Test func theSocketIsMadeAndRemovedInTheLibrarysFolder() async throws {
    let given = try Given()
    let service = try given.service()
    try given.swap()
    let planted = given.secret + "/" + Given.socket
    #expect(FileManager.default.createFile(atPath: planted, contents: nil))
    try await service.start()
    var status = stat()
    // It is root's alone: the library's owner can ask root's process for nothing.
    #expect(lstat(given.moved + "/" + Given.socket, &status) == 0)
    #expect(status.st_mode & S_IFMT == S_IFSOCK && status.st_mode & 0o777 == 0o600 && status.st_uid == 0)
    #expect(try given.names(given.secret) == [Given.socket])
    try await service.stop(patience: .zero)
    #expect(!isThere(given.moved + "/" + Given.socket) && isThere(planted))
    try given.end()
  }
}
