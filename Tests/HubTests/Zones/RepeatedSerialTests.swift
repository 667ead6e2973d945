import HubKit
import SheafHub
import SheafWire
import Testing

/// A device whose disk was put back to an earlier state gives its serials a second time.
@Suite struct RepeatedSerialTests {
  @Test(arguments: StoreEngine.available)
  func aSerialThatComesAgainWithAnotherSendIsRefusedAndNotTakenForIt(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      func document(_ name: String, _ serial: Int64) -> Send {
        var send = ZoneTests.document(name)
        send.serial = serial
        return send
      }
      let (a, b) = (document("a", 1), document("b", 2))
      let first = SendRequest(groups: [[a, b]])
      let answer = try await place.send(first)
      #expect(answer.verdicts.map(\.outcome) == [.done, .done])
      // Other items, one of them with others, and groups of another form.
      for groups in [[[document("c", 1)]], [[a]], [[a, document("c", 2)]], [[document("c", 2), document("d", 3)]]] {
        let sent = groups.joined().map(\.serial)
        let verdicts = try await place.send(SendRequest(groups: groups)).verdicts
        if groups == [[a]] {
          #expect(verdicts == [answer.verdicts[0]])
        } else {
          #expect(verdicts.map(\.reason) == sent.map { _ in .confirmed } && verdicts.map(\.serial) == Array(sent))
        }
      }
      // The same item, of which something else is to be changed.
      var renamed = Send(serial: 3, item: a.item, kind: .document, base: 1, read: 2)
      renamed.places = [.init(parent: .root, "x")]
      #expect(try await place.send(SendRequest(groups: [[renamed]])).verdicts.map(\.outcome) == [.done])
      var changed = Send(serial: 3, item: a.item, kind: .document, base: 1, read: 2)
      changed.mode = 0o600
      #expect(try await place.send(SendRequest(groups: [[changed]])).verdicts.map(\.reason) == [.confirmed])
      #expect(try await place.send(SendRequest(groups: [[renamed]])).verdicts.map(\.outcome) == [.done])
      // What comes again as it was has its verdict, also without its contents.
      var bare = a
      bare.version?.contents = nil
      #expect(try await place.send(SendRequest(groups: [[bare, b]])).verdicts == answer.verdicts)
      #expect(try await place.count("SELECT COUNT(*) FROM items WHERE deleted IS NULL") == 2)
    }
  }
}
