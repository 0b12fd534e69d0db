//! Functions of shapes that the attribute has to keep: their answers, their attributes, and what other macros wrote.
#![deny(warnings)]

use std::{fmt::Debug, pin::pin, rc::Rc};

use leasehold::{Error, ErrorKind, LockClient, MemoryBackend, Selector, locked};

fn client(store: &MemoryBackend) -> LockClient {
    LockClient::builder(store.clone()).build().expect("a client")
}

async fn is_free(client: &LockClient, name: &str) -> bool {
    client.inspect(Selector::name(name)).await.expect("memory answers").is_empty()
}

#[locked(name = "letters")]
async fn letters(client: &LockClient, text: &str) -> Result<impl Iterator<Item = impl Debug + Send>, Error> {
    if text.is_empty() {
        return Ok(Vec::new().into_iter());
    }
    Ok(text.chars().collect::<Vec<_>>().into_iter())
}

#[tokio::test]
async fn an_answer_may_be_of_a_type_without_a_name() {
    let ours = client(&MemoryBackend::new());
    assert_eq!(letters(&ours, "ab").await.expect("free").count(), 2);
    assert_eq!(letters(&ours, "").await.expect("free").count(), 0);
}

#[locked(name = "boxed")]
async fn boxed(client: &LockClient, number: Option<u8>) -> Result<Box<dyn Debug + Send>, Box<dyn std::error::Error>> {
    if let Some(number) = number {
        return Ok(Box::new(number));
    }
    "x".parse::<u8>()?;
    Ok(Box::new("text"))
}

#[tokio::test]
async fn answers_and_errors_are_coerced_as_in_a_plain_function() {
    let store = MemoryBackend::new();
    let (ours, theirs) = (client(&store), client(&store));
    assert_eq!(format!("{:?}", boxed(&ours, Some(1)).await.expect("free")), "1");
    assert!(boxed(&ours, None).await.expect_err("no number").is::<std::num::ParseIntError>());
    assert!(is_free(&theirs, "boxed").await);
    ours.close().await.expect("memory answers");
    let told = boxed(&ours, None).await.expect_err("closed").downcast::<Error>().expect("the lock's own error");
    assert_eq!(told.kind(), ErrorKind::Closed);
}

#[locked(name = "always")]
async fn always_returns(client: &LockClient) -> Result<u8, Error> {
    return Ok(1);
}

#[locked(name = "not-yet")]
async fn not_yet_written(_client: &LockClient, client: &LockClient) -> Result<u8, Error> {
    unreachable!("nobody calls it")
}

#[tokio::test]
async fn a_body_without_an_end_of_its_own_gives_no_warning() {
    let ours = client(&MemoryBackend::new());
    assert_eq!(always_returns(&ours).await.expect("free"), 1);
    drop(not_yet_written(&ours, &ours));
}

#[locked(name = "attributes")]
async fn with_an_attribute_inside(client: &LockClient) -> Result<(), Error> {
    #![expect(unused_variables, reason = "an attribute in the body is for the body")]
    let unused = 1;
    Ok(())
}

macro_rules! counter {
    ($function:ident, $client:ident, $name:literal, $wait:literal, $answer:ty) => {
        #[locked(name = $name, wait = $wait)]
        async fn $function($client: &LockClient) -> $answer {
            Ok(is_free($client, $name).await.into())
        }
    };
}

counter!(free_inside, client, "made", "0s", Result<u8, Error>);

#[tokio::test]
async fn a_function_may_be_written_by_another_macro() {
    let store = MemoryBackend::new();
    let (ours, theirs) = (client(&store), client(&store));
    with_an_attribute_inside(&ours).await.expect("free");
    assert_eq!(free_inside(&ours).await.expect("free"), 0, "it is held inside");
    let guard = theirs.lock("made").acquire().await.expect("free");
    assert_eq!(free_inside(&ours).await.expect_err("held").kind(), ErrorKind::TimedOut);
    guard.release().await.expect("held");
}

#[locked(name = "not-send:{number}")]
async fn not_send(client: &LockClient, number: Rc<u8>) -> Result<u8, Error> {
    tokio::task::yield_now().await;
    Ok(*number)
}

#[locked(name = "down:{from}")]
async fn counts_down(client: &LockClient, from: u32) -> Result<u32, Error> {
    if from == 0 { Ok(0) } else { Ok(1 + pin!(Box::pin(counts_down(client, from - 1))).await?) }
}

#[tokio::test]
async fn a_body_may_be_recursive_or_not_send() {
    let ours = client(&MemoryBackend::new());
    assert_eq!(not_send(&ours, Rc::new(3)).await.expect("free"), 3);
    assert_eq!(counts_down(&ours, 3).await.expect("free"), 3);
}

#[locked(name = name)]
async fn takes_all(client: LockClient, name: String) -> Result<(LockClient, usize), Error> {
    Ok((client, 1))
}

#[locked(name = "{name}:{id:>width$}")]
async fn takes_the_parts(client: LockClient, name: String, id: u8, width: usize) -> Result<(bool, String), Error> {
    let held = !is_free(&client, "order:  7").await;
    drop(client);
    Ok((held, name))
}

#[tokio::test]
async fn arguments_of_the_name_may_be_moved_by_the_body() {
    let (ours, _) = takes_all(client(&MemoryBackend::new()), "all".to_owned()).await.expect("free");
    assert_eq!(takes_the_parts(ours, "order".to_owned(), 7, 3).await.expect("free"), (true, "order".to_owned()));
}
