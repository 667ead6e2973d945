import Foundation
import SheafModel
import Testing

@testable import SheafStore

/// The words of the contract as values.
struct ValueTests {
  @Test(arguments: ["a@b", "alice@example.com", "a.b_c+d-e@x.y-z", "0@0"])
  func handles(_ text: String) throws { #expect(try AccountHandle(text).description == text) }

  @Test(arguments: ["", "@", "a@", "@b", "A@b", "a@B", "a b@c", "a@b@c", "a@b_c", "ä@b", "a@b/c", "a\u{0}@b"])
  func noHandles(_ text: String) { #expect(throws: SheafError.self) { try AccountHandle(text) } }

  @Test func handlesAreNamesOfFolders() throws {
    #expect(throws: SheafError.self) { try AccountHandle("a@" + String(repeating: "b", count: 254)) }
    #expect(try AccountHandle("a@" + String(repeating: "b", count: 253)).description.utf8.count == 255)
  }

  @Test func paths() throws {
    let account = try AccountHandle("a@b")
    let path = try ItemPath(account: account, "/Documents//./plans/a.md/")
    #expect(path.components.map { String(decoding: $0, as: UTF8.self) } == ["Documents", "plans", "a.md"])
    #expect(path.description == "Documents/plans/a.md")
    #expect(try ItemPath(account: account, bytes: [0x44, 0x2F, 0xFF]).bytes == [0x44, 0x2F, 0xFF])
    #expect(throws: SheafError.self) { try ItemPath(account: account, "Documents/../x") }
    #expect(throws: SheafError.self) { try ItemPath(account: account, bytes: [0x44, 0]) }
    let long = String(repeating: "x", count: 255)
    #expect(try ItemPath(account: account, long).components[0].count == 255)
    #expect { try ItemPath(account: account, long + "x") } throws: { ($0 as? SheafError)?.kind == .nameTooLong }
  }

  @Test func times() {
    let time = Timestamp(seconds: 1_795_257_125, nanoseconds: 7)
    #expect(time.description == "2026-11-21T10:32:05.000000007Z")
    #expect(time.nameText == "2026-11-21T10-32-05Z")
    #expect(time.secondsText == "2026-11-21T10:32:05Z")
    #expect(Timestamp(nanoseconds: -1).description == "1969-12-31T23:59:59.999999999Z")
    #expect(Timestamp(nanoseconds: -1).seconds == -1 && Timestamp(nanoseconds: -1).subsecondNanoseconds == 999_999_999)
    #expect(Timestamp(seconds: .max).nanoseconds == .max && Timestamp(seconds: .min).nanoseconds == .min)
    for nanoseconds in [Int64.min, .max - 1, .max] {
      let time = Timestamp(nanoseconds: nanoseconds)
      #expect((0..<1_000_000_000).contains(time.subsecondNanoseconds))
      #expect(Timestamp(seconds: time.seconds, nanoseconds: time.subsecondNanoseconds) == time)
      #expect(Timestamp(rfc3339: time.description) == time)
    }
    #expect(Timestamp(rfc3339: "2026-11-21T10:32:05Z") == Timestamp(seconds: 1_795_257_125))
    #expect(Timestamp(rfc3339: "2026-11-21T10:32:05.5Z")?.subsecondNanoseconds == 500_000_000)
    #expect(Timestamp(rfc3339: "2024-02-29T00:00:00Z")?.secondsText == "2024-02-29T00:00:00Z")
  }

  @Test(arguments: [
    "", "2026-11-21", "2026-11-21T10:32:05", "2026-11-21T10:32:05+01:00", "2026-13-21T10:32:05Z",
    "2026-11-21T24:32:05Z", "2026-11-21T10:32:05.Z", "2026-11-21T10:32:05.1234567890Z", "2026/11/21T10:32:05Z",
    "2026-11-21T10.32.05Z", "2026-02-30T10:32:05Z", "2026-11-00T10:32:05Z", "2023-02-29T10:32:05Z",
  ])
  func noTimes(_ text: String) { #expect(Timestamp(rfc3339: text) == nil) }

  @Test func timesGoThereAndBack() throws {
    var random = SeededRandom()
    for _ in 0..<2000 {
      let time = Timestamp(nanoseconds: Int64.random(in: .min / 2 ... .max / 2, using: &random))
      #expect(Timestamp(rfc3339: time.description) == time, random.note)
    }
  }

  @Test func faultPointsHaveNames() {
    let names = FaultPoint.allCases.map(\.rawValue)
    #expect(Set(names).count == names.count)
    #expect(FaultPoint.begin(.save).rawValue == "save.begin")
    #expect(FaultPoint.commit(.rename).rawValue == "rename.commit")
    #expect(FaultPoint.committed(.unlink).rawValue == "unlink.committed")
    for name in ["log.sync", "checkpoint", "reserve.release", "shrink"] { #expect(names.contains(name)) }
    #expect(names.allSatisfy { !$0.contains(":") }, "a colon parts name and action in SHEAF_FAULT")
  }

  @Test func errorsAreOneLine() {
    for kind in SheafError.Kind.allCases {
      let error = SheafError(kind, subject: "a\nb".printable, advice: "c")
      #expect(!error.description.contains("\n") && error.description.hasPrefix("a\\u{a}b: "))
    }
  }

  /// During an update the command may be newer than the process that has the library.
  @Test func theAnswerOfAnOlderProcessIsRead() throws {
    let answer = Data(#"{"problems": ["x"], "chunks": 1, "versions": 2, "items": 3}"#.utf8)
    let report = try JSONDecoder().decode(CheckReport.self, from: answer)
    #expect(report.problems == ["x"] && report.items == 3 && report.damaged == [])
    #expect(try JSONDecoder().decode(CheckReport.self, from: JSONEncoder().encode(report)).versions == 2)
  }

  @Test func namesKeepTheirPlace() {
    let hash = NameHash(key: 42)
    var seen: Set<Int64> = []
    for number in 0..<10_000 {
      let place = hash(Array("name \(number)".utf8))
      #expect(place >= 3)
      seen.insert(place)
    }
    #expect(seen.count == 10_000)
    #expect(NameHash(key: 43)(Array("a".utf8)) != hash(Array("a".utf8)))
  }
}

/// SplitMix64 from `SHEAF_SEED`, or a new seed that every failure prints.
struct SeededRandom: RandomNumberGenerator {
  let seed: UInt64
  private var state: UInt64

  init() {
    self.init(seed: ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max))
  }

  init(seed: UInt64) {
    self.seed = seed
    state = seed
  }

  /// What a failed expectation says.
  var note: Comment { "SHEAF_SEED=\(seed)" }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
