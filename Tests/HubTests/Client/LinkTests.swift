import Foundation
import SheafModel
import SheafWire
import Testing

@testable import SheafHubClient

/// Enrolment links, as they are checked before anything is dialled.
@Suite struct LinkTests {
  private static let code = Base64URL.text([UInt8](repeating: 7, count: 32))
  private static let fingerprint = Base64URL.text([UInt8](repeating: 9, count: 32))

  @Test func linksOfHubsAreTaken() throws {
    let whole = try Enrolment("https://hub.example:8443/enrol/\(Self.code)#\(Self.fingerprint)")
    #expect(whole.hub.description == "https://hub.example:8443" && whole.hub.isSecure)
    #expect(whole.code == Self.code && whole.hub.fingerprint == [UInt8](repeating: 9, count: 32))
    #expect(try Enrolment("https://hub.example/enrol/\(Self.code)").hub.fingerprint == nil)
    #expect(try Enrolment("https://[::1]:1/enrol/\(Self.code)").hub.description == "https://[::1]:1")
    for local in ["127.0.0.1:8080", "localhost:1", "[::1]"] {
      #expect(try !Enrolment("http://\(local)/enrol/\(Self.code)").hub.isSecure)
    }
  }

  @Test func nothingElseIs() throws {
    let (code, print) = (Self.code, Self.fingerprint)
    let texts = [
      "", "https://", "hub.example/enrol/\(code)", "ftp://hub.example/enrol/\(code)", "https://hub.example/s/\(code)",
      "https://hub.example/enrol/", "https://hub.example/enrol/\(code)/", "https://hub.example/enrol/\(code)x",
      "https://hub.example/enrol/\(code.dropLast())", "https://hub.example/enrol/\(code)?x", "https:///enrol/\(code)",
      "https://hub.example/enrol/\(code)#", "https://hub.example/enrol/\(code)#\(print.dropLast())",
      "https://hub.example/enrol/\(code)#\(print)x", "https://hub.example/enrol/\(code)##\(print)",
      "https://a@hub.example/enrol/\(code)", "https://hub.example:/enrol/\(code)",
      "https://hub.example:0/enrol/\(code)",
      "https://hub.example:65536/enrol/\(code)", "https://hub.example:443/enrol/\(code)",
      "https://Hub.example/enrol/\(code)", "https://hub example/enrol/\(code)", " https://hub.example/enrol/\(code)",
      "https://hub.example\\@evil.example/enrol/\(code)", "https://hub.example/enrol/\(code)\n",
      "https://h\u{0}ub.example/enrol/\(code)", "https://hüb.example/enrol/\(code)",
      "http://hub.example/enrol/\(code)", "http://10.0.0.1/enrol/\(code)",
      "http://127.0.0.1.evil.example/enrol/\(code)",
      "http://127.0.0.1:1/enrol/\(code)#\(print)", "https://" + String(repeating: "a", count: 3000) + "/enrol/\(code)",
    ]
    for text in texts {
      let error = #expect(throws: SheafError.self, "\(text)") { try Enrolment(text) }
      // A code makes a device: it stands in no error.
      #expect(error?.description.contains(code) == false && error?.advice != nil, "\(text)")
    }
  }
}
