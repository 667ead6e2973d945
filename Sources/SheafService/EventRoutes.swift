import HTTPTypes
import Hummingbird
import SheafLibrary
import SheafModel

extension LibraryAPI {
  /// Events of a page if the request does not say how many.
  private static let defaultLimit = 100

  /// `GET /v1/events`: a page of the events that the acting account sees. `GET /v1/events/stream`: the same events as
  /// they come.
  ///
  /// Parameters: `after`, a sequence number (without it the oldest event that is kept comes first); for pages `limit`;
  /// `path`, an item, for the events of it and of everything below it.
  func addEventRoutes(to routes: Routes) {
    addLog(at: "events", isWhole: false, to: routes)
    routes.get("events/latest") { request, _ in
      let query = try await eventQuery(request, isWhole: false)
      return try Response.json(
        try await call { library in
          try library.latestEvents(
            before: .max, after: 0, limit: query.limit, for: query.account, in: try query.scope(in: library))
        })
    }
  }

  /// `GET /v1/library/events` and `/v1/library/events/stream`: the log as the library itself sees it.
  func addLibraryEventRoutes(to routes: Routes) { addLog(at: "library/events", isWhole: true, to: routes) }

  private func addLog(at resource: String, isWhole: Bool, to routes: Routes) {
    routes.get("\(resource)") { request, _ in
      let query = try await eventQuery(request, isWhole: isWhole)
      return try Response.json(try await call { try query.page(of: $0) })
    }
    routes.get("\(resource)/stream") { request, _ in
      try await eventStream(try await eventQuery(request, isWhole: isWhole))
    }
  }

  /// `GET` and `DELETE /v1/notices` of the acting account, and `POST /v1/items/comments`.
  func addNoticeRoutes(to routes: Routes) {
    routes.get("notices") { request, _ in
      let account = try await account(request.address().account)
      return try Response.json(try await call { try $0.notices(for: account) })
    }
    routes.delete("notices") { request, _ in
      let account = try await account(request.address().account)
      guard let through = try request.number("through") else {
        throw SheafError(.invalid, subject: "through", reason: "is missing", advice: "give that of GET /v1/notices")
      }
      try await call { try $0.clearNotices(for: account, through: through) }
      return Response(status: .noContent)
    }
    routes.post("items/comments") { request, _ in
      let path = try await item(request)
      let text = try await request.decoded(as: CommentRequest.self).text
      return try Response.json(try await call { try $0.comment(path, text: text) }, status: .created)
    }
  }

  private func eventQuery(_ request: Request, isWhole: Bool) async throws -> EventQuery {
    // The event that was read last counts: a browser's EventSource sends it when it connects again.
    let last = try HTTPField.Name("Last-Event-ID").flatMap { request.headers[$0] }.map {
      try EventQuery.position($0, named: "Last-Event-ID")
    }
    let position = try last ?? request.number("after")
    let limit = try request.number("limit").map { Int(min($0, Int64(Library.eventPage))) }
    if let limit, limit == 0 { throw SheafError(.invalid, subject: "limit", reason: "is 0") }
    guard !isWhole else {
      return EventQuery(account: nil, path: nil, position: position, limit: limit ?? Self.defaultLimit)
    }
    let (account, path) = try await whole(request, isExact: true)
    return EventQuery(account: account, path: path, position: position, limit: limit ?? Self.defaultLimit)
  }
}

/// The account, the item and the position of a request for events.
struct EventQuery: Sendable {
  /// Nil for the library itself.
  let account: AccountHandle?
  let path: ItemPath?
  /// Sequence number after which to go on; nil to begin with the oldest event that is kept.
  let position: Int64?
  let limit: Int

  func scope(in library: any PathInterface) throws -> EventScope { try path.map { try library.eventScope($0) } ?? .all }

  func page(of library: any PathInterface) throws -> EventPage {
    try library.events(after: position, limit: limit, for: account, in: try scope(in: library), isNews: false)
  }

  /// A sequence number from its text.
  static func position(_ text: String, named name: String) throws -> Int64 {
    guard let number = Int64(text), number >= 0 else {
      throw SheafError(.invalid, subject: "\(name) \(text.printable)", reason: "is no sequence number")
    }
    return number
  }
}

extension Request {
  /// A query parameter that is a number, at least 0; nil where it is absent.
  func number(_ name: String) throws -> Int64? {
    try parameter(name).map { try EventQuery.position($0, named: name) }
  }
}
