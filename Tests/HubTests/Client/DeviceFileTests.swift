import Foundation
import Glibc
import MountKit
import SheafModel
import SheafWire
import Testing

@testable import SheafHubClient

/// The file that makes a machine a device: it is its user's alone, and never half there.
@Suite struct DeviceFileTests {
  private let enrolment: Enrolment
  private let enrolled = EnrolledDevice(
    device: WireID().description, handle: "alice@hub.example", zone: WireID().description)

  init() throws {
    enrolment = try Enrolment("https://hub.example/enrol/\(Base64URL.text([UInt8](repeating: 7, count: 32)))")
  }

  private func finish(_ file: DeviceFile) throws -> Device {
    try file.finish(
      enrolment, try file.key(for: enrolment), enrolled, handle: try AccountHandle(enrolled.handle))
  }

  @Test func itIsReadAsItWasWritten() throws {
    try withTemporaryFolder { folder in
      let file = DeviceFile("\(folder.path)/a/b/device.json")
      let device = try finish(file)
      let read = try file.read()
      #expect(read.key.rawRepresentation == device.key.rawRepresentation && read.hub == enrolment.hub)
      #expect(read.zone == enrolled.zone && read.id == enrolled.device && read.handle.description == enrolled.handle)
      for (path, mode) in [("/a", 0o700), ("/a/b", 0o700), ("/a/b/device.json", 0o600)] {
        var status = stat()
        #expect(stat(folder.path + path, &status) == 0 && status.st_mode & 0o777 == UInt32(mode), "\(path)")
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: "\(folder.path)/a/b") == ["device.json"])
      // Nothing replaces a device by accident.
      let error = #expect(throws: SheafError.self) { try file.key(for: enrolment) }
      #expect(error?.kind == .exists && error?.reason.contains("alice@hub.example at https://hub.example") == true)
    }
  }

  /// Who is interrupted asks again with the same key: its code may be spent already. Another link makes another key.
  @Test func anInterruptedEnrolmentGoesOnWithItsKey() throws {
    try withTemporaryFolder { folder in
      let file = DeviceFile("\(folder.path)/device.json")
      let key = try file.key(for: enrolment)
      #expect(try DeviceFile(file.path).key(for: enrolment).rawRepresentation == key.rawRepresentation)
      let error = #expect(throws: SheafError.self) { try file.read() }
      #expect(error?.advice?.contains("same link") == true)
      let other = Enrolment(hub: enrolment.hub, code: Base64URL.text([UInt8](repeating: 8, count: 32)))
      #expect(try file.key(for: other).rawRepresentation != key.rawRepresentation)
      // A draft that a kill left is in nobody's way.
      let whole = try #require(FileManager.default.contents(atPath: file.path))
      let draft = file.path + ".new"
      for length in [0, 10, whole.count] {
        #expect(
          FileManager.default.createFile(
            atPath: draft, contents: whole.prefix(length), attributes: [.posixPermissions: 0o600]))
        let next = Enrolment(hub: enrolment.hub, code: Base64URL.text([UInt8](repeating: UInt8(length % 9), count: 32)))
        _ = try file.key(for: next)
        #expect(access(draft, F_OK) != 0, "\(length) bytes are left")
      }
      _ = try file.finish(other, try file.key(for: other), enrolled, handle: try AccountHandle(enrolled.handle))
      #expect(try file.read().id == enrolled.device)
    }
  }

  /// A file of somebody's that has the draft's name by chance is not Sheaf's to remove.
  @Test func anothersFileBesideTheKeyStays() throws {
    try withTemporaryFolder { folder in
      let file = DeviceFile("\(folder.path)/device.json")
      let draft = file.path + ".new"
      try "mine".write(toFile: folder.path + "/mine", atomically: false, encoding: .utf8)
      let makers: [(String, () throws -> Void)] = [
        ("a text", { try "mine".write(toFile: draft, atomically: false, encoding: .utf8) }),
        (
          "a text of the user alone",
          {
            try "mine".write(toFile: draft, atomically: false, encoding: .utf8)
            #expect(chmod(draft, 0o600) == 0)
          }
        ),
        ("a link", { #expect(symlink("mine", draft) == 0) }),
        ("a fifo", { #expect(mkfifo(draft, 0o600) == 0) }),
      ]
      for (what, make) in makers {
        try make()
        let error = #expect(throws: SheafError.self) { try file.key(for: enrolment) }
        #expect(error?.kind == .exists && error?.subject == draft.printable, "\(what): \(error as Any)")
        #expect(unlink(draft) == 0, "\(what) is gone")
      }
      _ = try file.key(for: enrolment)
      #expect(try String(contentsOfFile: folder.path + "/mine", encoding: .utf8) == "mine")
    }
  }

  @Test func whatOthersCanReadIsRefused() throws {
    try withTemporaryFolder { folder in
      let file = DeviceFile("\(folder.path)/device.json")
      _ = try finish(file)
      func refusal(_ path: String? = nil) -> SheafError? {
        #expect(throws: SheafError.self) { try DeviceFile(path ?? file.path).read() }
      }
      for mode: mode_t in [0o640, 0o604, 0o620, 0o644] {
        #expect(chmod(file.path, mode) == 0)
        let error = refusal()
        #expect(error?.kind == .accessDenied && error?.reason.contains(String(mode, radix: 8)) == true)
        #expect(throws: SheafError.self) { try file.key(for: enrolment) }
      }
      #expect(chmod(file.path, 0o600) == 0)
      let link = "\(folder.path)/link"
      #expect(symlink(file.path, link) == 0)
      #expect(refusal(link)?.reason == "is a symbolic link")
      let second = "\(folder.path)/second"
      #expect(Glibc.link(file.path, second) == 0)
      #expect(refusal()?.kind == .invalid)
      #expect(unlink(second) == 0 && mkfifo(second, 0o600) == 0)
      #expect(refusal(second)?.kind == .invalid)
      #expect(refusal(folder.path)?.kind == .invalid)
      #expect(refusal("\(folder.path)/none")?.advice?.contains("sheaf-sidecar connect") == true)
      _ = try file.read()
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "a file of another user needs root"))
  func whatIsAnothersIsRefused() throws {
    try withTemporaryFolder { folder in
      let file = DeviceFile("\(folder.path)/device.json")
      _ = try finish(file)
      #expect(chown(file.path, 12_345, 12_345) == 0)
      let error = #expect(throws: SheafError.self) { try file.read() }
      #expect(error?.reason == "belongs to another user")
    }
  }

  @Test func nonsenseIsRefused() throws {
    try withTemporaryFolder { folder in
      let file = DeviceFile("\(folder.path)/device.json")
      _ = try finish(file)
      let text = try String(contentsOfFile: file.path, encoding: .utf8)
      let changes = [
        text.replacing("\"format\" : 1", with: "\"format\" : 2"), text.replacing("https", with: "http"),
        text.replacing("hub.example\"", with: "hub example\""), text.replacing("alice@", with: "Alice@"),
        text.replacing(enrolled.zone, with: "../.."), text.replacing(enrolled.device, with: ""),
        String(text.dropLast(5)), "", "[]", String(repeating: "[", count: 10_000),
        String(repeating: " ", count: 20_000),
      ]
      for change in changes {
        #expect(change != text)
        try change.write(toFile: file.path, atomically: false, encoding: .utf8)
        let error = #expect(throws: SheafError.self, "\(change)") { try file.read() }
        #expect(error?.kind == .corrupt && error?.advice != nil, "\(change)")
      }
    }
  }
}
