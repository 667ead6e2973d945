import Hummingbird
package import SheafModel

/// The one table from kinds of failure to HTTP statuses.
extension SheafError.Kind {
  /// The HTTP status code of a failure of this kind.
  package var statusCode: Int {
    switch self {
    case .notFound, .noAttribute, .noSuchAddress: 404
    case .exists, .notEmpty, .tooManyLinks, .crossDevice, .busy: 409
    case .accessDenied, .notPermitted, .readOnly: 403
    case .invalid, .notDirectory, .isDirectory, .nameTooLong, .badDescriptor: 400
    case .tooLarge, .attributeTooLarge: 413
    case .gone: 410
    case .noSpace: 507
    case .notSupported: 501
    case .inputOutput, .corrupt, .newerFormat: 500
    case .unavailable, .unreachable: 503
    }
  }
}

extension SheafError {
  /// The response for this failure: the table's status, and the error itself as JSON.
  func response() -> Response {
    guard var response = try? Response.json(self, status: .init(code: kind.statusCode)) else {
      return Response(status: .internalServerError)
    }
    // Seconds (RFC 9110, section 10.2.3).
    if kind == .unavailable { response.headers[.retryAfter] = "1" }
    return response
  }

  /// Any failure as one of the kinds; an error that is not Sheaf's own counts as `inputOutput`.
  init(any error: any Error) {
    switch error {
    case let error as SheafError: self = error
    case is any HTTPResponseError: self = SheafError(.invalid, reason: "the request makes no sense")
    default: self = SheafError(.inputOutput, reason: "\(error)".printable)
    }
  }
}
