import Foundation
import GRDB
import Logging
import SheafClient
import SheafLibrary
import SheafModel
import SheafService
import Testing

@Suite struct ServiceTests {
  /// Serves a new library in a folder of its own to `body`, once its file is changed as SQL says.
  private func withService(
    folder name: String = "library", changed sql: String? = nil, mounts: (any MountController)? = nil,
    _ body: (Library, SheafClient) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sheaf-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let location = LibraryLocation(path: folder.appendingPathComponent(name).path + "/library.sqlite")
    if let sql { try Self.makeLibrary(at: location, changed: sql) }
    let library = try Library.open(location)
    let service = try SheafService(library: library, mounts: mounts, logger: Logger(label: "test"))
    try await service.start()
    var status = stat()
    #expect(lstat(location.socketPath, &status) == 0 && status.st_mode & 0o7777 == 0o600)
    #expect(try SocketProbe.served(of: location) == location.socketPath)
    let client = try SheafClient(socket: location.socketPath, library: location.path)
    do {
      try await body(library, client)
    } catch {
      Issue.record(error)
    }
    await client.shutdown()
    try await service.stop(patience: .seconds(5))
    #expect(try SocketProbe.served(of: location) == nil)
    #expect(lstat(location.socketPath, &status) != 0)
    try library.close()
  }

  /// What a process that was killed leaves: nobody listens, and the file is there.
  @Test(.enabled(if: getuid() == 0, "the folder of such sockets is root's"))
  func aSocketThatIsLeftHidesNoLibrary() async throws {
    try await withService { library, _ in
      let user: UInt32 = 65_534
      let left = UserSocket.path(library: library.location.path, uid: user)
      try FileManager.default.createDirectory(atPath: UserSocket.folder, withIntermediateDirectories: true)
      defer { unlink(left) }
      let socket = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: left.utf8) }
      let bound = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
      }
      close(socket)
      try #require(bound == 0)
      #expect(try SocketProbe.served(of: library.location, by: user) == library.location.socketPath)
    }
  }

  /// What a call fails with.
  private func failure(_ call: () async throws -> Void) async -> SheafError? {
    do {
      try await call()
      return nil
    } catch {
      return error as? SheafError
    }
  }

  /// Of whatever a library holds, an error of it names its file.
  @Test func whatIsDamagedIsNamedWithItsLibrary() async throws {
    try await withService(changed: "INSERT INTO settings VALUES ('searchContents', 1)") { library, client in
      let answered = await failure { _ = try await client.settings() }
      #expect(answered?.kind == .corrupt && answered?.subject == library.location.path, "\(answered as Any)")

      let other = LibraryLocation(path: library.location.path + ".other")
      try Self.makeLibrary(at: other, changed: "UPDATE settings SET value = 'x' WHERE key = 'hashKey'")
      let refused = await failure { try Library.open(other).close() }
      #expect(refused?.kind == .corrupt && refused?.subject == other.path, "\(refused as Any)")
    }
  }

  private static func makeLibrary(at location: LibraryLocation, changed sql: String) throws {
    try Library.open(location).close()
    let database = try DatabaseQueue(path: location.path)
    try database.writeWithoutTransaction { try $0.execute(sql: sql) }
    try database.close()
  }

  @Test func servesAccountsAndErrors() async throws {
    try await withService { library, client in
      let info = try await client.info(within: .seconds(10))
      #expect(info == ServiceInfo(library: library.location.path, id: library.id, pid: getpid(), mounts: false))
      let alice = try AccountHandle("alice@example.com")
      #expect(try await client.addAccount(alice, name: "Alice") == Account(handle: alice, name: "Alice"))
      #expect(try await client.accounts().map(\.handle) == [alice])
      #expect(await failure { _ = try await client.addAccount(alice, name: nil) }?.kind == .exists)
      let nothing = ItemAddress(account: nil, path: Array("Documents/none".utf8))
      #expect(await failure { _ = try await client.versions(of: nothing) }?.kind == .notFound)
      #expect(await failure { try await client.content(of: nothing, version: nil) { _ in } }?.kind == .notFound)
      let bad = ItemAddress(account: nil, path: Array("Documents/../x".utf8))
      #expect(await failure { _ = try await client.status(of: bad) }?.kind == .invalid)
      let mount = MountRequest(mountpoint: "/nowhere", account: alice)
      #expect(await failure { _ = try await client.mount(mount) }?.kind == .unavailable)
      #expect(try await client.status().counts?.accounts == 1)
      try await client.removeAccount(alice)
      #expect(try await client.accounts().isEmpty)
    }
  }

  /// The fault is the request's, and the answer says what it is.
  @Test(arguments: ["zz\r\n{}\r\n0\r\n\r\n", "ffffffffffffffffff\r\n{}\r\n", "-1\r\n{}\r\n0\r\n\r\n"])
  func aBadChunkSizeIsToldAsOne(_ chunks: String) async throws {
    try await withService { library, _ in
      let connection = try await RawConnection.open(library.location.socketPath)
      try await connection.send(
        "POST /v1/accounts HTTP/1.1\r\nHost: sheaf\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
      let answer = try await connection.answer()
      #expect(answer.status == 400 && answer.body.contains("hunk"), "\(answer)")
    }
  }

  @Test func tellsProgressAndResultsOfLongJobs() async throws {
    try await withService { _, client in
      #expect(try await client.check { _ in }.problems.isEmpty)
      _ = try await client.compact { _ in }
      let copy = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
      defer { unlink(copy) }
      try await client.backup(to: copy) { _ in }
      #expect(access(copy, F_OK) == 0)
      #expect(await failure { try await client.backup(to: copy) { _ in } }?.kind == .exists)
      #expect(await failure { try await client.backup(to: "relative") { _ in } }?.kind == .invalid)
    }
  }

  @Test func servesLibrariesWithLongPaths() async throws {
    try await withService(folder: String(repeating: "long", count: 40)) { library, client in
      #expect(library.location.socketPath.utf8.count > SocketPath.maximumLength)
      let status = try await client.status()
      #expect(status.library == library.location.path)
    }
  }

  /// Around what a socket's address holds, and what swift-nio takes of that.
  @Test func servesLibrariesWhoseSocketsPathIsNearlyTooLong() async throws {
    var shortest = 0
    try await withService(folder: "x") { library, _ in shortest = library.location.socketPath.utf8.count - 1 }
    for length in 102...109 {
      try await withService(folder: String(repeating: "x", count: length - shortest)) { library, client in
        #expect(library.location.socketPath.utf8.count == length)
        let status = try await client.status()
        #expect(status.library == library.location.path)
      }
    }
  }

  @Test func mountsThroughTheController() async throws {
    try await withService(mounts: FakeMounts()) { _, client in
      let alice = try await client.addAccount(try AccountHandle("alice@example.com"), name: nil).handle
      let mount = MountInfo(mountpoint: "/mnt/a b", account: alice, readOnly: false)
      #expect(try await client.mount(MountRequest(mountpoint: mount.mountpoint, account: alice)) == mount)
      #expect(try await client.mounts() == [mount])
      #expect(try await client.status().mounts == [mount])
      #expect(await failure { try await client.removeAccount(alice) }?.kind == .busy)
      #expect(try await client.unmount(mount.mountpoint, lazy: false).remaining == 0)
      #expect(await failure { _ = try await client.unmount(mount.mountpoint, lazy: false) }?.kind == .notFound)
    }
  }
}

/// Mounts nothing, and remembers it.
private actor FakeMounts: MountController {
  private var live: [MountInfo] = []

  func mount(_ request: MountRequest) async throws -> MountInfo {
    let info = MountInfo(mountpoint: request.mountpoint, account: request.account, readOnly: request.readOnly)
    live.append(info)
    return info
  }

  func unmount(mountpoint: String, lazy: Bool) async throws -> Int {
    guard live.contains(where: { $0.mountpoint == mountpoint }) else {
      throw SheafError(.notFound, subject: mountpoint)
    }
    live.removeAll { $0.mountpoint == mountpoint }
    return live.count
  }

  func contains(folder: String) async -> Bool { live.contains { folder.hasPrefix($0.mountpoint + "/") } }

  func mounts() async -> [MountInfo] { live }
}
