import SheafWire
import Testing

@testable import SheafReplication

/// What `sheaf status` says does not fit on the disk.
struct LackingRoomTests {
  private static func id(_ number: UInt8) throws -> WireID {
    try #require(WireID(bytes: Array(repeating: 0, count: 15) + [number]))
  }

  @Test func itIsToldOnceAndGoesWithItsCause() throws {
    let (first, second) = (try Self.id(1), try Self.id(2))
    var room = LackingRoom()
    let told = [(second, "b", 1), (first, "a", 1), (first, "a", 2)].map {
      room.note(ItemNotice(item: $0, text: $1), in: $2)
    }
    #expect(told == [true, true, false])
    #expect(room.notices.map(\.text) == ["a", "b"])
    room.end(1)
    #expect(room.notices.map(\.text) == ["a", "b"])
    room.end(2)
    #expect(room.notices.map(\.text) == ["a"])
    let isNew = room.note(ItemNotice(item: first, text: "other"), in: 2)
    #expect(isNew && room.notices.map(\.text) == ["other"])
    room.remove(first)
    #expect(room.isEmpty && room.notices.map(\.text) == [])
  }

  @Test func aFewOfManyAreTold() throws {
    var room = LackingRoom()
    for number in 0..<100 { _ = room.note(ItemNotice(item: try Self.id(UInt8(number)), text: "\(number)"), in: 1) }
    #expect(room.notices.map(\.text) == (0..<20).map(String.init))
  }
}
