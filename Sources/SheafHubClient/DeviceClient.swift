import AsyncHTTPClient
import Crypto
import Foundation
import NIOCore
package import SheafModel
package import SheafWire

/// A log of events at a hub.
package enum HubLog: Hashable, Sendable {
  /// The account's own.
  case own
  /// That of a share of somebody else's.
  case share(WireID)

  var path: String {
    switch self {
    case .own: "/v1/events"
    case .share(let share): "/v1/shares/\(share)/events"
    }
  }
}

/// How far a reader is in a log.
package struct HubLogPlace: Hashable, Sendable {
  /// The number of the last event that was read.
  package let number: Int64
  /// Of the log and the epoch in which it was read.
  package let token: String

  package init(number: Int64, token: String) {
    self.number = number
    self.token = token
  }
}

/// A hub's API, as a device sees it.
///
/// Every call throws ``HubFailure``, or the cancellation of the task.
///
/// ```swift
/// let client = DeviceClient(try DeviceFile(path).read())
/// let page = try await client.events(.own, after: nil)
/// await client.shutdown()
/// ```
package final class DeviceClient: Sendable {
  /// Bytes of a device's name.
  package static let longestName = DeviceRequest.longestName

  /// Events of a page.
  private static let pageLimit = 100

  package let device: Device
  /// The pace of all contents that it sends and fetches.
  package let pace: ContentPace
  private let transport: HubTransport
  private let sessions: HubSessions

  package init(_ device: Device, limits: DeviceClientLimits = DeviceClientLimits(), pace: ContentPace = ContentPace()) {
    self.device = device
    self.pace = pace
    transport = HubTransport(device.hub, limits: limits, account: device.handle)
    sessions = HubSessions(transport, device)
  }

  /// The same device at the hub of a share that is another one than its own, for that share alone.
  ///
  /// - Parameters:
  ///   - own: The device at its own hub, which it asks for what it needs to prove itself.
  ///   - keys: Where the keys are that the device deposited.
  package init(_ own: DeviceClient, guestOf share: WireID, at hub: HubIdentity, keys: KeyFile) {
    let former = own.device
    device = Device(hub: hub, handle: former.handle, zone: former.zone, id: former.id, key: former.key)
    pace = own.pace
    let transport = HubTransport(hub, limits: own.limits, account: former.handle)
    self.transport = transport
    let guest = GuestSessions(own: own, share: share, hub: hub, keys: keys)
    sessions = HubSessions(transport) { try await guest.begin($0, transport) }
  }

  /// Ends all connections; the client must not be used any more.
  package func shutdown() async { await transport.shutdown() }

  /// Makes this machine a device of the account that a link enrols. Who is interrupted does it again by the same link.
  ///
  /// - Parameters:
  ///   - name: What people call the machine, of 1 to 64 bytes.
  ///   - file: Where the key is kept from then on.
  /// - Throws: ``HubFailure``, or ``SheafError`` of the file.
  package static func enroll(
    by enrolment: Enrolment, name: String, file: DeviceFile, limits: DeviceClientLimits = DeviceClientLimits()
  ) async throws -> Device {
    let key = try file.key(for: enrolment)
    let transport = HubTransport(enrolment.hub, limits: limits)
    let enrolled: EnrolledDevice
    do {
      enrolled = try await ask("/v1/enrollments", enrolment, key, name, transport)
    } catch {
      await transport.shutdown()
      // A key with which the code was not spent is of no use. Where no answer came it may have been.
      if let failure = error as? HubFailure, case .refused = failure.kind { file.discard(enrolment) }
      throw error
    }
    await transport.shutdown()
    guard let handle = try? AccountHandle(enrolled.handle), WireID(enrolled.zone)?.description == enrolled.zone,
      WireID(enrolled.device)?.description == enrolled.device
    else { throw transport.nonsense("makes this machine a device of nobody") }
    return try file.finish(enrolment, key, enrolled, handle: handle)
  }

  /// Of whom this machine would become a device by a link. Nothing is spent, and nothing is written.
  ///
  /// - Parameters:
  ///   - name: What people call the machine, of 1 to 64 bytes.
  ///   - file: Where the key of an enrolment by the same link may be that was interrupted; nil where none was.
  /// - Throws: ``HubFailure``, as ``enroll(by:name:file:limits:)`` does, or ``SheafError`` of the file.
  package static func preview(
    by enrolment: Enrolment, name: String, file: DeviceFile?, limits: DeviceClientLimits = DeviceClientLimits()
  ) async throws -> (handle: AccountHandle, zone: WireID) {
    let key = try file?.begunKey(for: enrolment) ?? P256.Signing.PrivateKey()
    let transport = HubTransport(enrolment.hub, limits: limits)
    let preview: EnrollmentPreview
    do {
      preview = try await ask("/v1/enrollments/preview", enrolment, key, name, transport)
    } catch {
      await transport.shutdown()
      throw error
    }
    await transport.shutdown()
    guard let handle = try? AccountHandle(preview.handle), let zone = WireID(preview.zone),
      zone.description == preview.zone
    else { throw transport.nonsense("makes this machine a device of nobody") }
    return (handle, zone)
  }

  private static func ask<Answer: Decodable & Sendable>(
    _ path: String, _ enrolment: Enrolment, _ key: P256.Signing.PrivateKey, _ name: String, _ transport: HubTransport
  ) async throws -> Answer {
    let address = enrolment.hub.address.description
    let point = key.publicKey.x963Representation
    let proof = DeviceProof(purpose: .enroll, address: address, secret: enrolment.code, key: point)
    let request = DeviceRequest(
      code: enrolment.code, name: name, address: address, key: point,
      signature: try key.signature(for: proof.message).derRepresentation)
    do {
      return try await transport.fetch(try HubRequest(posting: request, to: path))
    } catch let failure as HubFailure where failure.kind == .refused(.forbidden) {
      throw HubFailure(
        failure.kind, enrolment.hub, failure.reason, advice: "ask for a new link: sheaf-hub account link HANDLE")
    }
  }

  /// Tells the hub that what this machine had of the account is destroyed, after the device was removed for that. It
  /// needs no session, and may be told again.
  package func tellWiped() async throws {
    let request = try device.request(.wipe, try await transport.challenge().challenge, at: transport.hub)
    try await transport.perform(try HubRequest(posting: request, to: "/v1/wipes"))
  }

  // MARK: - Requests

  var limits: DeviceClientLimits { transport.limits }

  /// The account of the device.
  package func account() async throws -> AccountFacts { try await fetch("/v1/account") }

  /// Some of what changed in the account's zone after a token; without one everything.
  ///
  /// - Parameter wait: Seconds for which the hub holds the answer back while there is no news, up to 30.
  package func feed(after token: String?, limit: Int = 100, wait: Int = 0) async throws -> FeedPage {
    let wait = min(max(0, wait), 30)
    let query = "limit=\(limit)" + (token.map { "&token=\($0)" } ?? "") + (wait > 0 ? "&wait=\(wait)" : "")
    let page: FeedPage = try await fetch("/v1/feed?" + query)
    try checkToken(page.token)
    guard page.items.count <= limit, page.items.allSatisfy(\.isSound),
      zip(page.items, page.items.dropFirst()).allSatisfy({ $0.number < $1.number }),
      !page.hasMore || !page.items.isEmpty,
      page.retentions?.utf8.count ?? 0 <= WireLimits.retentionMark
    else { throw nonsense("gives out a page of a feed that is none") }
    return page
  }

  /// Some of a log's events, oldest first, after a place; from the beginning without one.
  ///
  /// - Throws: of kind `refused(.gone)` for a place of another time; ``events(_:former:)`` then tells what follows.
  package func events(_ log: HubLog, after place: HubLogPlace?) async throws -> LogPage<Event> {
    let query = place.map { "&token=\($0.token)&after=\($0.number)" } ?? ""
    return try await events(log, query, after: place?.number ?? 0)
  }

  /// The events that follow what a place of another time and the log of now have in common.
  package func events(_ log: HubLog, former place: HubLogPlace) async throws -> LogPage<Event> {
    try await events(log, "&former=\(place.token)&after=\(place.number)", after: 0)
  }

  private func events(_ log: HubLog, _ query: String, after number: Int64) async throws -> LogPage<Event> {
    let page: LogPage<Event> = try await fetch("\(log.path)?limit=\(Self.pageLimit)\(query)")
    try checkToken(page.token)
    guard page.isSound(after: number, limit: Self.pageLimit) else {
      throw nonsense("gives out a page of events that is none")
    }
    return page
  }

  func checkToken(_ token: String) throws {
    let isSound =
      (1...256).contains(token.utf8.count)
      && token.utf8.allSatisfy { (48...57).contains($0) || (97...122).contains($0) }
    guard isSound else { throw nonsense("gives out a token that is none") }
  }

  func fetch<Answer: Decodable & Sendable>(_ path: String) async throws -> Answer { try await fetch(HubRequest(path)) }

  func fetch<Answer: Decodable & Sendable>(_ request: HubRequest) async throws -> Answer {
    try await inSession { token in try await transport.fetch(request.with(token: token)) }
  }

  /// As ``HubTransport/fetchIfAny(_:as:)``, in a session.
  func fetchIfAny<Answer: Decodable & Sendable>(_ request: HubRequest, as type: Answer.Type) async throws -> Answer? {
    try await inSession { token in try await transport.fetchIfAny(request.with(token: token), as: type) }
  }

  func perform(_ request: HubRequest) async throws {
    try await inSession { token in try await transport.perform(request.with(token: token)) }
  }

  /// Opens a stream that goes on until one side ends it.
  func open(_ request: HubRequest) async throws -> HTTPClientResponse {
    try await inSession { token in try await transport.open(request.with(token: token)) }
  }

  /// Opens contents, later where the hub asks for that.
  func openPatiently(_ request: HubRequest) async throws -> HTTPClientResponse {
    try await inSession { token in try await transport.openPatiently(request.with(token: token)) }
  }

  /// The next bytes of a stream; nil at its end.
  func next(_ bytes: inout HTTPClientResponse.Body.AsyncIterator) async throws -> ByteBuffer? {
    try await transport.next(&bytes)
  }

  func decode<Answer: Decodable & Sendable>(_ bytes: ByteBuffer) async throws -> Answer {
    try await transport.decode(bytes)
  }

  /// Runs `body` with a token; once more with another one if the hub takes the first no more.
  private func inSession<Value>(_ body: (String) async throws -> Value) async throws -> Value {
    let token = try await sessions.token()
    do {
      return try await body(token)
    } catch let failure as HubFailure where failure.kind == .refused(.unauthorized) {
      await sessions.refused(token)
      return try await body(try await sessions.token())
    }
  }

  // MARK: - News

  /// How far the account's logs go, now and whenever one goes on, for as long as it is read.
  package func news() -> HubNews { HubNews(client: self) }

  func decodeNews(_ bytes: ByteBuffer) async throws -> LogNews {
    let news: LogNews = try await decode(bytes)
    guard news.logs.allSatisfy({ $0.last >= 0 && $0.read >= 0 }) else { throw nonsense("tells of a log that is none") }
    for log in news.logs { try checkToken(log.token) }
    return news
  }

  /// How far the zone's feed goes, now and whenever it goes on, for as long as it is read.
  package func changes() -> HubChanges { HubChanges(client: self) }

  func decodeChanges(_ bytes: ByteBuffer) async throws -> FeedNews {
    let news: FeedNews = try await decode(bytes)
    guard news.number >= 0, news.inbox >= 0, news.shares.allSatisfy({ $0.number >= 0 }) else {
      throw nonsense("tells of a feed that is none")
    }
    return news
  }

  // MARK: - Failures

  /// The failure of a hub that is not waited for any longer.
  package var silence: HubFailure { transport.silence }

  func nonsense(_ reason: String) -> HubFailure { transport.nonsense(reason) }

  /// The failure that a problem in the place of something else tells.
  func refusal(_ problem: Problem) -> HubFailure { transport.refusal(problem.status, retryAfter: nil, problem) }

  /// The failure for an answer that ends before its end.
  func brokeOff(_ what: String) -> HubFailure {
    HubFailure(.unreachable, device.hub, "ended \(what)", advice: "it may be ending")
  }

  var babbles: HubFailure { nonsense("sends a message without an end") }
}
