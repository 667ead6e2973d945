import FoundationEssentials
import Hummingbird
import Logging
import SheafModel

extension Response {
  /// A response whose body is `value` as JSON, with a newline.
  static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
    Response(
      status: status, headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: try ByteBuffer(jsonLine: value)))
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
  /// Longest body of a request, in bytes.
  private static let maximumBody = 64 * 1024

  /// The item that the request is about.
  func address() throws -> ItemAddress { try ItemAddress(query: uri.query ?? "") }

  /// A query parameter's text; nil if it is absent.
  func parameter(_ name: String) throws -> String? {
    try QueryParameters(uri.query ?? "")[name].map { String(decoding: $0, as: UTF8.self) }
  }

  /// The body as a value.
  ///
  /// - Throws: ``SheafError`` of kind `invalid` for anything but JSON of this type.
  func decoded<Value: Decodable>(as type: Value.Type = Value.self) async throws -> Value {
    var buffer = ByteBuffer()
    var isTooLarge = false
    do {
      // To the end in any case: a client that sends all before it reads takes no answer before that.
      for try await part in body {
        isTooLarge = isTooLarge || buffer.readableBytes + part.readableBytes > Self.maximumBody
        if !isTooLarge { buffer.writeImmutableBuffer(part) }
      }
    } catch {
      // The client sent it, and sent it wrong: a bad chunk size, say, or less than it said.
      throw SheafError(
        .invalid, subject: "request body", reason: "is not sent as HTTP/1.1 has it: \(error)".printable,
        advice: "send it with Content-Length, or in chunks (RFC 9112, section 7.1)")
    }
    guard !isTooLarge else { throw SheafError(.invalid, reason: "the request is too large") }
    do {
      return try JSONDecoder().decode(type, from: Data(buffer.readableBytesView))
    } catch let error as SheafError {
      throw error
    } catch {
      throw SheafError(.invalid, subject: "request body", reason: "is not the JSON that \(uri.path) takes")
    }
  }
}

/// Turns a route's error into a response of the status table.
struct ErrorMiddleware<Context: RequestContext>: RouterMiddleware {
  /// The library's file, for errors of what is damaged in it.
  let library: String
  /// The error for resources that do not exist.
  var missing = SheafError(.notFound, reason: "the API has no such resource")

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    do {
      return try await next(request, context)
    } catch let error as any HTTPResponseError where error.status == .notFound {
      return missing.response()
    } catch {
      return SheafError(any: error).naming(library: library).response()
    }
  }
}
