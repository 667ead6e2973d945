import Testing

@testable import SheafReplication

/// What `sheaf status` says went otherwise than wanted.
struct NoticeListTests {
  @Test func eachIsToldOnceTheLatestLast() {
    var list = NoticeList()
    let added = ["a", "b", "a", "a"].map { list.add($0) }
    #expect(added == [true, true, false, false])
    #expect(list.words == ["b", "a"])
    for number in 0..<100 { _ = list.add("\(number)") }
    #expect(list.words == (80..<100).map(String.init))
  }
}
