import Foundation
import SheafWire
import Testing

/// What goes over the wire comes back as it was, and what cannot be is refused where it is decoded.
@Suite struct WireTests {
  private func decode<T: Decodable>(_ type: T.Type, _ json: String) throws -> T {
    try JSONDecoder().decode(type, from: Data(json.utf8))
  }

  @Test func sendsComeBackAsTheyWere() throws {
    let hash = try #require(ChunkHash(bytes: Array(0..<32)))
    let sends = [
      Send(
        serial: .max, item: WireID(), kind: .document, base: 5, read: 6,
        places: [Place(parent: .root, "ü\u{1F600}"), Place(parent: WireID(), name: [0xFF, 0x41])], mode: 0o644,
        mtime: .min, attributes: ["user.a": Data([0, 0xFF])],
        version: SentVersion(
          id: WireID(), base: WireID(), cause: .autosave, time: -1,
          extents: [Extent(hash: hash, length: 7), Extent(hash: nil, length: .max)])),
      Send(serial: 2, item: WireID(), kind: .symlink, target: Data([0xFE])),
      Send(serial: 3, item: WireID(), kind: .folder, isDeletion: true),
    ]
    let request = SendRequest(groups: [sends], confirmed: 9)
    #expect(try JSONDecoder().decode(SendRequest.self, from: try JSONEncoder().encode(request)) == request)
  }

  @Test func aNameHasItsTextOrItsBytes() throws {
    let id = "0F0E0D0C-0b0a-0908-0706-050403020100"
    let place = try decode(Place.self, #"{"parent":"\#(id)","name":"a"}"#)
    #expect(place.parent.description == id.lowercased() && place.name == [0x61])
    #expect(try decode(Place.self, #"{"parent":"\#(id)","nameBase64":"/0E="}"#).name == [0xFF, 0x41])
    let refused = [
      #"{"parent":"\#(id)"}"#, #"{"parent":"\#(id)","name":""}"#, #"{"parent":"\#(id)","name":".."}"#,
      #"{"parent":"\#(id)","name":"."}"#, #"{"parent":"\#(id)","name":"a/b"}"#,
      #"{"parent":"\#(id)","name":"a\u0000"}"#, #"{"parent":"\#(id)","nameBase64":"Lw=="}"#,
      #"{"parent":"\#(id)","nameBase64":"?"}"#, #"{"parent":"\#(id)0","name":"a"}"#, #"{"parent":7,"name":"a"}"#,
      #"{"parent":"\#(id)","name":"\#(String(repeating: "é", count: 128))"}"#,
    ]
    for json in refused { #expect(throws: (any Error).self, "\(json)") { try decode(Place.self, json) } }
  }

  @Test func numbersAndHashesAreChecked() throws {
    let digits = String(repeating: "0a", count: 32)
    #expect(try decode(Extent.self, #"{"hash":"\#(digits)","length":1}"#).hash?.description == digits)
    for json in [
      #"{"hash":"\#(digits.uppercased())","length":1}"#, #"{"hash":"\#(digits)0","length":1}"#,
      #"{"hash":"\#(digits)","length":1.5}"#, #"{"hash":"\#(digits)","length":9223372036854775808}"#,
      #"{"hash":"\#(digits)"}"#,
    ] {
      #expect(throws: (any Error).self, "\(json)") { try decode(Extent.self, json) }
    }
    for text in ["", "x", String(repeating: "é", count: 18), String(repeating: "0", count: 36)] {
      #expect(WireID(text) == nil && ChunkHash(text) == nil, "\(text)")
    }
  }
}
