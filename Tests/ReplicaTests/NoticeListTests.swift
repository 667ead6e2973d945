import SheafWire
import Testing

@testable import SheafReplication

/// What `sheaf status` says went otherwise than wanted.
struct NoticeListTests {
  @Test func eachIsToldOnceTheLatestLast() {
    var list = NoticeList()
    let added = ["a", "b", "a", "a"].map { list.add(ItemNotice(item: .root, text: $0)) }
    #expect(added == [true, true, false, false])
    #expect(list.notices.map(\.text) == ["b", "a"])
    for number in 0..<100 { _ = list.add(ItemNotice(item: .root, text: "\(number)")) }
    #expect(list.notices.map(\.text) == (80..<100).map(String.init))
  }
}
