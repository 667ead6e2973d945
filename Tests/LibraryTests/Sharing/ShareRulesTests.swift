import SheafModel
import Testing

/// The whole table of who may do what, written out by hand.
struct ShareRulesTests {
  /// Operation; then `x` for each of owner, administrator, private editor, private viewer, public editor, public viewer
  /// that may do it once they have joined.
  private static let table: [(ShareOperation, String)] = [
    (.read, "xxxxxx"),
    (.readHistory, "xxxxxx"),
    (.write, "xxx.x."),
    (.create, "xxx.x."),
    (.rename, "xxx.x."),
    (.delete, "xxx.x."),
    (.recover, "xxx.x."),
    (.restore, "xxx.x."),
    (.label, "xxx.x."),
    (.comment, "xxx.x."),
    (.resolve, "xxx.x."),
    (.listPeople, "xxxxxx"),
    (.listEveryone, "xxxx.."),
    (.managePeople, "xx...."),
    (.answerRequests, "xx...."),
    (.changeShare, "x....."),
    (.manageAdministrators, "x....."),
    (.unshare, "x....."),
    (.purge, "x....."),
    (.leave, ".xxxxx"),
    (.accept, "......"),
  ]

  private static let standings: [(Role, SharePermission)] = [
    (.owner, .readWrite), (.administrator, .readWrite), (.privateUser, .readWrite), (.privateUser, .readOnly),
    (.publicUser, .readWrite), (.publicUser, .readOnly),
  ]

  @Test func theTableIsWhole() { #expect(Set(Self.table.map(\.0)) == Set(ShareOperation.allCases)) }

  @Test(arguments: Acceptance.allCases)
  func everyRowIsAsWritten(_ acceptance: Acceptance) {
    for (operation, row) in Self.table {
      for ((role, permission), mark) in zip(Self.standings, row) {
        let expected: Bool =
          switch acceptance {
          case .accepted: mark == "x"
          case .pending: operation == .accept && role != .owner
          case .removed: false
          }
        let allowed = ShareRules.allows(operation, role: role, permission: permission, acceptance: acceptance)
        #expect(allowed == expected, "\(operation) \(role) \(permission) \(acceptance)")
      }
    }
  }

  /// What says of an owner or administrator that they may only read counts for nothing.
  @Test func ownersAndAdministratorsAlwaysWrite() {
    for role in [Role.owner, .administrator] {
      for operation in ShareOperation.allCases {
        #expect(
          ShareRules.allows(operation, role: role, permission: .readOnly, acceptance: .accepted)
            == ShareRules.allows(operation, role: role, permission: .readWrite, acceptance: .accepted))
      }
    }
  }

  @Test func summariesSayWhoMayDoWhat() {
    func text(_ anyone: PublicPermission, _ invited: [SharePermission], _ otherwise: SharePermission = .readWrite)
      -> String
    {
      ShareSummary.text(anyone: anyone, invited: invited, otherwise: otherwise)
    }
    #expect(text(.none, []) == "Only invited people can edit")
    #expect(text(.none, [], .readOnly) == "Only invited people can view")
    #expect(text(.none, [.readWrite]) == "Only invited people can edit")
    #expect(text(.none, [.readOnly]) == "Only invited people can view")
    #expect(text(.none, [.readOnly, .readWrite]) == "Only invited people can view; some of them can edit")
    #expect(text(.readOnly, []) == "Everyone with the link can view")
    #expect(text(.readOnly, [.readOnly]) == "Everyone with the link can view")
    #expect(text(.readOnly, [.readWrite]) == "Everyone with the link can view; invited people can edit")
    #expect(text(.readWrite, []) == "Everyone with the link can edit")
    #expect(text(.readWrite, [.readOnly]) == "Everyone with the link can edit")
  }

  @Test func everyFormOfTheURLHasTheToken() throws {
    let token = ShareToken.random()
    #expect(token.text.utf8.count == 24)
    let forms: [(String, ShareURL.Place)] = [
      (token.url(address: nil, library: "0198-lib"), .library("0198-lib")),
      (token.url(address: "docs.example.com", library: ""), .address("docs.example.com")), (token.text, .any),
      ("/s/\(token.text)", .any), ("https://Other.example:443/s/\(token.text)/", .address("other.example")),
      ("HTTPS://x:8080/s/\(token.text)?utm=1#top", .address("x:8080")),
      ("sheaf://ABC/s/\(token.text)\n", .library("abc")),
    ]
    for (form, place) in forms {
      let url = try ShareURL(form)
      #expect(url.token == token && url.place == place, "\(form)")
    }
    #expect("\(token)" == "…" && !String(reflecting: token).contains(token.text))
  }

  @Test(arguments: [
    "", "/", "https://x/s/", "https://x/s/short", "https://x/t/AAAAAAAAAAAAAAAAAAAAAAAA",
    "http://x/s/AAAAAAAAAAAAAAAAAAAAAAAA", "x/s/AAAAAAAAAAAAAAAAAAAAAAAA", "https://x/y/s/AAAAAAAAAAAAAAAAAAAAAAAA",
    "sheaf://lib/s/AAAA AAAAAAAAAAAAAAAAAAAAA",
    "../../etc/passwd", "https://x/s/AAAAAAAAAAAAAAAAAAAAAAA\u{0430}", String(repeating: "A", count: 65),
    String(repeating: "/s/", count: 3000),
  ])
  func whatIsNoURLIsRefusedWithoutRepeatingIt(_ text: String) {
    let error = #expect(throws: SheafError.self) { try ShareURL(text) }
    #expect(error?.kind == .invalid)
    if text.count > 3 { #expect(error?.description.contains(text) == false) }
  }

  @Test func tokensAreNeverTheSame() {
    let tokens = (0..<2000).map { _ in ShareToken.random().text }
    #expect(Set(tokens).count == 2000)
    #expect(tokens.allSatisfy { $0.count == ShareToken.length })
    // Commands take the other two signs at the front for options, and mail programs leave them out at the end.
    for end in tokens.flatMap({ [$0.prefix(1), $0.suffix(1)] }) { #expect(end != "-" && end != "_") }
    #expect(tokens.contains { $0.contains("-") } && tokens.contains { $0.contains("_") })
  }
}
