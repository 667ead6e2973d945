import Testing

@testable import SheafReplication

/// What `sheaf status` says went otherwise than wanted.
struct NoticeListTests {
  @Test func eachIsToldOnceTheLatestLast() {
    var list = NoticeList()
    #expect(["a", "b", "a", "a"].map { list.add($0) } == [true, true, false, false])
    #expect(list.words == ["b", "a"])
    for number in 0..<100 { #expect(list.add("\(number)")) }
    #expect(list.words == (80..<100).map(String.init))
  }
}
