import Testing

@testable import SheafMount

/// To whom the open of a file without a name is refused once (``UnlinkedOpens``).
@Suite struct UnlinkedOpensTests {
  @Test func whoComesRightAgainIsLetIn() {
    let opens = UnlinkedOpens()
    #expect(!opens.allows(7, by: 1))
    opens.refuse(7, to: 1)
    // Neither another thread nor another file.
    #expect(!opens.allows(7, by: 2))
    #expect(opens.allows(7, by: 1))
    #expect(!opens.allows(7, by: 1))
    opens.refuse(7, to: 1)
    #expect(!opens.allows(8, by: 1))
    #expect(!opens.allows(7, by: 1))
    // Threads that are not known cannot be told apart.
    #expect(opens.allows(7, by: 0))
  }

  @Test func manyThreadsTakeNoMemory() {
    let opens = UnlinkedOpens()
    for thread in 1...5000 { opens.refuse(7, to: Int32(thread)) }
    #expect((1...5000).count { opens.allows(7, by: Int32($0)) } <= 1024)
    opens.refuse(7, to: 1)
    #expect(opens.allows(7, by: 1))
  }
}
