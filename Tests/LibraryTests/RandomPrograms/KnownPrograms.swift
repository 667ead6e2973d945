/// Programs that broke a rule once.
enum KnownPrograms {
  static let all: [(name: String, text: String)] = [
    (
      "a passing name is shared",
      """
      alice.0 save .doc.tmp
      alice.1 invite .doc.tmp carol edit
      """
    ),
    (
      "a folder moves from which a young file was renamed",
      """
      alice.0 mkdir team
      alice.1 save doc
      alice.0 rename doc team/.doc.tmp
      alice.0 rename team draft
      """
    ),
    (
      "a folder takes the place of one from which a young file was deleted",
      """
      alice.0 mkdir team
      alice.0 mkdir draft
      alice.0 mkdir draft/sub
      alice.0 save draft/sub/doc
      alice.3 unlink draft/sub/doc
      alice.3 rename team draft/sub
      """
    ),
    (
      "a quiet file is written again by another inode",
      """
      alice.1 save .doc.tmp
      alice.0 unlink .doc.tmp
      alice.0 open 0 .doc.tmp trunc
      alice.0 wait 16
      """
    ),
    (
      "a file goes just after a save that waits to be told of",
      """
      alice.0 mkdir team
      alice.1 save team/.doc.tmp
      alice.0 save team/.doc.tmp
      alice.1 unlink team/.doc.tmp
      """
    ),
    (
      "a known file loses its passing name",
      """
      alice.0 mkdir team
      alice.1 save team/.doc.tmp
      alice.0 label team/.doc.tmp
      alice.0 rename team/.doc.tmp team/doc
      alice.0 upkeep
      alice.0 rename team/doc team/t
      """
    ),
    (
      "a file that was told of early leaves no trace",
      """
      alice.0 open 0 doc.bak creat
      alice.0 purge nothing
      alice.0 unlink doc.bak
      """
    ),
  ]
}
