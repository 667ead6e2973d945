import Foundation
import NIOCore
import SheafClient
import SheafModel
import SheafService
import Testing

@Suite struct ModelTests {
  @Test(arguments: SheafError.Kind.allCases)
  func everyKindHasAStatus(kind: SheafError.Kind) {
    #expect((400..<600).contains(kind.statusCode))
  }

  @Test func statusesSayWhoseFaultItIs() {
    #expect(SheafError.Kind.notFound.statusCode == 404)
    #expect(SheafError.Kind.invalid.statusCode == 400)
    #expect(SheafError.Kind.busy.statusCode == 409)
    #expect(SheafError.Kind.accessDenied.statusCode == 403)
    #expect(SheafError.Kind.noSpace.statusCode == 507)
    #expect(SheafError.Kind.unavailable.statusCode == 503)
  }

  @Test func addressesAnyBytes() throws {
    let every = (1...255).map { UInt8($0) }
    let address = ItemAddress(account: try AccountHandle("a+b@x"), path: every)
    #expect(address.query.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
    #expect(try ItemAddress(query: address.query) == address)
    #expect(try ItemAddress(query: "") == ItemAddress(account: nil, path: nil))
    let longest = "path=" + String(repeating: "d/", count: 2048)
    #expect(try ItemAddress(query: longest).path?.count == 4096)
    #expect { try ItemAddress(query: longest + "d") } throws: { ($0 as? SheafError)?.kind == .nameTooLong }
    #expect(try ItemAddress(query: "x=1&path=").path == [])
  }

  @Test(arguments: ["path=%", "path=%4", "path=%zz", "path=a&path=b", "as=nobody"])
  func refusesBadQueries(query: String) {
    #expect(throws: SheafError.self) { try ItemAddress(query: query) }
  }

  @Test func whatIsAbsentIsNull() throws {
    let status = ItemStatus(
      id: "1", path: "Documents", kind: "folder", version: nil, owner: try AccountHandle("a@b"), mode: 0o755,
      mtime: Timestamp(seconds: 0, nanoseconds: 0), state: "saved", ignored: false, conflict: nil, beside: nil,
      share: nil, people: [], changes: [], can: [])
    let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(status)) as? [String: Any]
    let names = Mirror(reflecting: status).children.compactMap { $0.label?.trimmingPrefix("_") }.map(String.init)
    #expect(Set(object.map { Array($0.keys) } ?? []) == Set(names))
    #expect(object?["version"] is NSNull)
  }

  @Test func jobLinesAreToldApart() throws {
    let lines: [JobLine<BackupRequest>] = [
      .progress(Progress(done: 1, total: 2)), .result(BackupRequest(file: "/a")), .error(SheafError(.noSpace)),
    ]
    for line in lines {
      let data = try JSONEncoder().encode(line)
      let decoded = try JSONDecoder().decode(JobLine<BackupRequest>.self, from: data)
      switch (line, decoded) {
      case (.progress(let left), .progress(let right)): #expect(left.done == right.done)
      case (.result(let left), .result(let right)): #expect(left == right)
      case (.error(let left), .error(let right)): #expect(left == right)
      default: Issue.record("\(line) came back as \(decoded)")
      }
    }
  }

  @Test func cutsLinesWhereverTheBytesBreak() {
    var lines = LineBuffer()
    var found: [String] = []
    for part in ["ab", "c\nd", "", "e\n\nf"] {
      lines.append(ByteBuffer(string: part))
      while let line = lines.next() { found.append(String(buffer: line)) }
    }
    #expect(found == ["abc", "de", ""])
  }
}
