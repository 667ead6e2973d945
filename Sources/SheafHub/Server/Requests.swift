import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import NIOPosix
import SheafModel
import SheafWire

/// The hub's knowledge of a request.
struct HubContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// Whose request it is, once the session was found.
  var caller: Caller?
  /// The address that the request comes from; empty on a Unix socket.
  let source: String

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    self.source = source.channel.remoteAddress?.ipAddress ?? ""
  }

  /// - Throws: ``HubError`` for a request without a session, or one of a guest.
  func requireCaller() throws -> Caller {
    guard let caller else { throw HubError(.unauthorized, "the request has no session") }
    guard caller.guest == nil else { throw HubError(.forbidden, "a guest's session is for one share alone") }
    return caller
  }

  /// Also a guest of a share.
  ///
  /// - Parameter share: The share that the request is about; nil for one that finds it by a link.
  /// - Throws: ``HubError`` for a request without a session, or one for another share.
  func requireCaller(in share: WireID?) throws -> Caller {
    guard let caller, let guest = caller.guest else { return try requireCaller() }
    // To a guest all other shares are none.
    guard share == nil || guest.share == share else { throw HubShare.nothing }
    return caller
  }
}

extension Response {
  /// A response whose body is `value` as JSON, with a newline.
  static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
    Response(
      status: status, headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: try ByteBuffer(jsonLine: value)))
  }

  init(_ problem: Problem) {
    var headers: HTTPFields = [.contentType: "application/problem+json"]
    switch problem.kind {
    case .unauthorized: headers[.wwwAuthenticate] = "Bearer"
    case .unavailable, .tooMany: headers[.retryAfter] = "2"
    default: break
    }
    // Values of this type always encode.
    let body = (try? ByteBuffer(jsonLine: problem)) ?? ByteBuffer()
    self.init(
      status: HTTPResponse.Status(code: problem.status), headers: headers, body: ResponseBody(byteBuffer: body))
  }
}

extension ByteBuffer {
  /// `value` as one line of JSON.
  init(jsonLine value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    self.init(bytes: try encoder.encode(value))
    writeInteger(UInt8(ascii: "\n"))
  }
}

extension Request {
  /// The body as a value.
  ///
  /// - Parameter limit: Bytes that the body may have.
  /// - Throws: ``HubError`` for anything but JSON of this type.
  func json<Value: Decodable & Sendable>(_ type: Value.Type = Value.self, upTo limit: Int) async throws -> Value {
    guard let type = headers[.contentType], type.prefix(while: { $0 != ";" }).lowercased() == "application/json" else {
      throw HubError(.mediaType, "the body must be application/json")
    }
    guard headers[.contentEncoding].map({ $0.lowercased() == "identity" }) ?? true else {
      throw HubError(.mediaType, "JSON is taken as it is, without a Content-Encoding")
    }
    let buffer = try await bytes(upTo: limit)
    let isShort = buffer.readableBytes <= JSONText.short
    if isShort { return try JSONText.decode(Value.self, buffer.readableBytesView) }
    return try await JSONText.decoding.runIfActive { try JSONText.decode(Value.self, buffer.readableBytesView) }
  }

  /// The body, of so many bytes at most.
  func bytes(upTo limit: Int) async throws -> ByteBuffer {
    if let length = headers[.contentLength].flatMap({ Int($0) }), length > limit {
      throw HubError(.tooLarge, "a body of at most \(limit) bytes may be sent here")
    }
    do {
      return try await body.collect(upTo: limit)
    } catch let error as any HTTPResponseError where error.status == .contentTooLarge {
      throw HubError(.tooLarge, "a body of at most \(limit) bytes may be sent here")
    } catch let error where error is CancellationError || error is HubError {
      throw error
    } catch {
      // The bytes of the connection are no body, or it broke off.
      throw HubError(.invalid, "the body is not whole, or not framed as HTTP has it")
    }
  }

  /// A parameter of the query; nil where it is absent.
  func parameter(_ name: String) -> String? { uri.queryParameters[name[...]].map(String.init) }

  /// A parameter that is `true` or `false`; false where it is absent.
  func flag(_ name: String) throws -> Bool {
    guard let text = parameter(name) else { return false }
    guard let isSet = Bool(text) else { throw HubError(.invalid, "\(name): neither true nor false") }
    return isSet
  }

  /// A parameter that is a number from 0 to `limit`; nil where it is absent.
  func number(_ name: String, upTo limit: Int64 = .max) throws -> Int64? {
    guard let text = parameter(name) else { return nil }
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }), let number = Int64(text), number <= limit
    else {
      throw HubError(.invalid, "\(name): not a number from 0 to \(limit)")
    }
    return number
  }
}

/// JSON from strangers.
enum JSONText {
  /// Bytes that are decoded where they are asked for.
  static let short = 64 * 1024
  /// Decodes what is longer: however much of that strangers send, others are answered meanwhile.
  static let decoding = {
    let threads = NIOThreadPool(numberOfThreads: max(1, System.coreCount / 2))
    threads.start()
    return threads
  }()

  /// - Throws: ``HubError`` of kind `invalid`, without any of the text in it.
  static func decode<Value: Decodable>(_ type: Value.Type, _ bytes: some Collection<UInt8>) throws -> Value {
    let shape = JSONShape(of: bytes, upTo: JSONShape.mostSentValues)
    guard shape.depth <= JSONShape.deepest else {
      throw HubError(.invalid, "the body is nested more than \(JSONShape.deepest) deep")
    }
    guard shape.number <= JSONShape.longestNumber else {
      throw HubError(.invalid, "the body has a number of more than \(JSONShape.longestNumber) bytes")
    }
    guard shape.values <= JSONShape.mostSentValues else {
      throw HubError(.invalid, "the body has more than \(JSONShape.mostSentValues) values")
    }
    do {
      return try JSONDecoder().decode(type, from: Data(bytes))
    } catch let error as HubError {
      throw error
    } catch let error as DecodingError {
      throw HubError(.invalid, "the body is not the JSON that is taken here" + (place(error).map { ": \($0)" } ?? ""))
    } catch {
      throw HubError(.invalid, "the body is not the JSON that is taken here")
    }
  }

  /// The key at which decoding failed. Keys that the hub asks for are its own words, and those of a map are not told.
  private static func place(_ error: DecodingError) -> String? {
    switch error {
    case .keyNotFound(let key, _): "\(key.stringValue) is missing"
    case .dataCorrupted(let context) where context.debugDescription == Place.noName: Place.noName
    default: nil
    }
  }
}
