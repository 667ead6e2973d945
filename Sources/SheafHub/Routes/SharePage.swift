import HTTPTypes
import Hummingbird
import NIOCore
import SheafModel
import SheafWire
import Synchronization

extension HubRoutes {
  /// The page of a share's URL in a browser.
  func addSharePage(to routes: some RouterMethods<HubContext>) {
    let (sharing, pace) = (hub.sharing, RequestPace())
    add(
      "s/:token", to: routes,
      [
        .get: { _, context in
          try pace.take(context.source, at: .now)
          let text = context.parameters.get("token") ?? ""
          guard let link = try? ShareURL(text).token, let offer = try await sharing.offerToStrangers(link) else {
            return SharePage.nothing
          }
          return SharePage.response(to: offer, url: url(of: link))
        }
      ])
  }
}

/// The page of a share's URL: it says no more than the URL tells anybody. For a link that is none, one that ended and one
/// for invited people alone it is the same page.
enum SharePage {
  static func response(to offer: Sharing.Offer, url: String) -> Response {
    let (share, owner) = (offer.share, offer.owner)
    let person = owner.name.map { "\($0) (\(owner.handle))" } ?? owner.handle
    return page(
      title: share.title, status: .ok,
      body: """
        <h1>\(escaped(share.title))</h1>
        <p>A \(share.kind == .folder ? "folder" : "document") that \(escaped(person)) shares.
        \(escaped(share.summary)).</p>
        <p>To open it, run:</p>
        <pre>sheaf accept \(escaped(url))</pre>
        """)
  }

  static var nothing: Response {
    page(
      title: "Sheaf", status: .notFound,
      body: """
        <h1>There is nothing to see here</h1>
        <p>This link ended, or what it leads to is for invited people alone. If you were invited, run
        <code>sheaf accept</code> with the whole link. Otherwise ask whoever gave it to you.</p>
        """)
  }

  private static func page(title: String, status: HTTPResponse.Status, body: String) -> Response {
    let page = """
      <!doctype html>
      <html lang="en">
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="robots" content="noindex">
      <title>\(escaped(title))</title>
      \(body)
      </html>

      """
    return Response(
      status: status, headers: PublicPage.headers, body: ResponseBody(byteBuffer: ByteBuffer(string: page)))
  }

  /// Text as HTML shows it.
  static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

/// How fast anybody may ask who has no session: a bucket of tokens for each name, such as that of an address. Behind a
/// proxy all addresses are one.
final class RequestPace: Sendable {
  /// Requests at once, and then in each second.
  static let burst = 200.0
  static let rate = 50.0
  /// Names that are remembered.
  private static let mostNames = 4_096

  private struct Bucket {
    var tokens: Double
    var filled: ContinuousClock.Instant
  }

  private let buckets = Mutex<[String: Bucket]>([:])

  /// - Throws: ``HubError`` of kind `tooMany`.
  func take(_ name: String, at now: ContinuousClock.Instant) throws {
    let isAllowed = buckets.withLock { buckets in
      var bucket = buckets[name] ?? Bucket(tokens: Self.burst, filled: now)
      let seconds = (now - bucket.filled) / .seconds(1)
      bucket.tokens = min(Self.burst, bucket.tokens + max(0, seconds) * Self.rate)
      bucket.filled = now
      let isAllowed = bucket.tokens >= 1
      if isAllowed { bucket.tokens -= 1 }
      if buckets.count >= Self.mostNames, buckets[name] == nil { buckets = [:] }
      buckets[name] = bucket
      return isAllowed
    }
    guard isAllowed else { throw HubError(.tooMany, "requests come too fast") }
  }
}
